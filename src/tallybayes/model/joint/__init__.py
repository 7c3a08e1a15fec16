"""The other model: the joint table of all columns, and what it tells about the assumptions of naive Bayes.

Begin with `table`. A *cell* of a joint table is one value of every column; `dependence` has the one mutual information,
`assumptions` and `shift` are tests on tallies, `check` says whether a joint table can be filled at all.
"""
