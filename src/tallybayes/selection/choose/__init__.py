"""Choosing settings on held-out rows, because nobody should have to.

Begin with `fit`, which is `tb.fit`, then `chosen`: from a look at the data to settings. `deal` says which rows are held
out together, never by the order of a file; `alike` and `alike_texts` whether neighbours belong together. `columns` are
*coded*: rows told apart by cells, with a *table* cell × class for each *reader* (a family); `values` says how far each
value is to be believed, and whether neighbours on a line are alike. `problem` has the rows, the columns and who judges,
`joint` is the sum of it all, `losses` what rows lose by it, `penalised` its fit, `pairs` what else could be in it, and
`ladder` tries one *rung* after the other, of which so much is taken (`forms`) as rows that had no part in it gain by.
`text` goes on with words. `written` writes down what was found. `tune` tries settings that a person names, `likeliest`
by a tally alone. `straight` stands alone: what a line costs, and what it leaves of corrections, is a matter of its own.
`untied` and `descent` know nothing of rows: how neighbours come apart, and the way down for many numbers.
"""
