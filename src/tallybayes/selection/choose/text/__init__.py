"""What the texts of a table add once all columns have been weighed: words are many, and each says little.

Begin with `beside`: further *readings* of a text, a correction for every word, the lead of the best class bent, one
step after the other, each judged as a rung of the ladder is. `words` are the columns of words that choosing meets and
the readings it offers, `columns` what such a column says of each row whichever folds are counted, `corrections` the fit
of a number for every word, `effects` how these numbers reach the rows, and what rows say back.
"""
