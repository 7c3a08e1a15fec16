"""A model in use: asked, taught and corrected, and nothing of it lost.

Imports `store`, `explain` and the rooms below; only `cli` opens it. Begin with `desk`, the live model and its one
writer: `served` is what the model becomes, `journal` the SQLite file beside it in which every operation stands before
it is acknowledged, `recovery` what opening sees to. `suggest` says which row to label next, `judging` how good the
model is, `lately` what came in since it was learnt. `api` says what can be asked, `app` gives it addresses, `guard`
says who may ask; `openapi`, `problems` and `metrics` are what their names say. `place` is the folder that the `pages`
work in: `looking` is what is understood of a table there, `fitting` makes a model of it in the background, and `asking`
turns what a person types into a row.
An *operation* is one change that was asked for, with its number; a *standing* is what a kept row is just now: counted
under a label, in the pool, skipped or gone. To *fold* is to write the model file anew.
"""
