"""Answering: a tally and settings make a model, a model makes answers.

Imports `families`, `tally` and the rooms below. Begin with `estimate` (θ from T and settings), then `model`, then
`scoring` (rows → blocks → parts → sum → answer). *Parts* are what each column says of a row, class by class; a *score*
is their sum. `one_row` answers one row in plain Python, `fast` is the door to the scoring kernels, `learning` updates
and forgets, `counted` makes weights of counts alone, `generative` says how likely rows are and draws them, `written`
makes a model of tables written by hand, `predict_file` writes answers to a file, with the strongest `reasons` of each
row, `views` shows what a model is made of, with the tables of `odds` and the `graph`, `provenance` says where it comes
from, `sets` has prediction sets once `selection.sets` has scored rows for them; `held` is what all these parts of a
model find in it. `watching` counts what a model in use is asked, `joint` is the other model: the full joint table, and
what it says about independence.
"""
