"""Counting: the tally, its table, the guard of forgetting, and rows that wait.

Imports `data`, `exact` and `base`. Begin with `tally`. `table` lays a tally out as rows for files, `guard` says what no
rows can have, `traces` renews a schema once rows are forgotten, `waiting` and `one_row` keep the changes of a few
single rows until counting them together repays it, `overlap` says whether rows are among those counted, `together`
counts the cells of columns two by two. A *receipt* is a hash of a row; a *delta* is what waiting rows add. `unlabelled`
counts rows whose labels nobody knows, `grouped` groups that a database has made, `spark` where a cluster has the
rows. `windows` has a tally per period (counted by `by_period`, added by `period_sums`), and any window as a sum.
`views` is what a notebook shows of both.
"""
