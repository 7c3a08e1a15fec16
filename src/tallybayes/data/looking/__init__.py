"""A first look: what each column is, and whether it is the answer in disguise.

Imports `data`, `exact` and `base`. Begin with `propose` (a column → what it may be, and why). `look` is what is read of
one column, each thing once; `leaks` finds columns that give the label away. A *look* is some rows from all over the
source, a *leak* a column that nobody has where an answer is wanted.
"""
