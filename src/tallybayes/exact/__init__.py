"""Integers that add: the only arithmetic of a tally, exact to the last bit and the same in any order.

Imports `base`. Begin with `limbs`, then `sheet` and `counts`. A *limb* is 32 bits of an exact number; a *sheet* is a
table slot × class → amounts; *counts* are a column's sheets; a *cell* is an interval of the number line that is counted
as one; *moments* are n, Σx and Σx². `sums` adds rows up by class; `kernels` has the fast twins.
"""
