"""The other model: the joint table of all columns, and what it tells about the assumptions of naive Bayes.

Begin with `table`. A *cell* of a joint table is one value of every column: `cells` counts them and says what is
believed of each. `dependence` says how much columns tell about each other, `assumptions` asks that of every pair given
the class, `shift` how two sets of rows differ (counts by `side_by_side`, p by `two_samples`; `mixture` is for rows
without labels), `check` whether a joint table can be filled at all.
"""
