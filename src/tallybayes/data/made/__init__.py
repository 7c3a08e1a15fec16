"""Data to begin with: the lectures' tables, the examples of the package, and generators whose truth is known.

Begin with `datasets`, which is public as `tb.datasets`. `dataset` is the record that all of them give, `draws` gives
the same numbers on every machine, `tables` has what is written out, `generated` what is drawn, `texts` what is written
from phrases. A *truth* is what is known about rows because they were made.
"""
