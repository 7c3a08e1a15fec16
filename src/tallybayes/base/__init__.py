"""What everything stands on: errors, arrays, canonical text, Arrow, threads, files that are whole or not there, tables.

Imports no other room. Begin with `errors`, then `canon`, the one road from a value to its text, number or date; `times`
are dates as whole numbers, and `arrow` goes the same road with a column at once. `disk` is the only writer of
files that replace others, `show` the only one that draws tables as text and HTML, `view` folds them in a notebook,
`draw` makes pictures of characters, `threads` is the only place that starts threads, `lazy` keeps SciPy out of a cold
start.
"""
