"""Rows without labels: EM gives each a share of every class, held-out labels decide whether and how much they count.

May import the rest of selection and what lies below it. Begin with `fit.py: fit_with_unlabelled`, which `tb.fit` opens
where it is given `unlabelled=`. *Places* are what the columns of all rows hold, as one sparse matrix; a *mixture* is
the rows with and without labels as EM sees them; *shares* are the probabilities of the classes for an unlabelled row.
"""
