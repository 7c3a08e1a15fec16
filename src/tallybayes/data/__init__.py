"""Rows in: from anything tabular to the blocks that are counted and scored.

Imports `exact` and `base`. Begin with `sources` (data → batches), then `schema` (what a column is), `kinds` (one record
for each kind of column), `encode` (batch → blocks). A *source* gives batches; a *batch* is some rows, column by column,
as they came; a *block* is one column of a batch as codes, numbers or entries, ready to be added or scored; `infer`
proposes a schema, `look` takes the first look at one column. `columns` takes a column from whatever holds it, `values`
turns it into texts or numbers, `dates` into parts of dates, `clock` into hours: value by value, so that neighbours
change nothing. `marks` are what people write where a value is missing, `copies` says which rows are one row.
"""
