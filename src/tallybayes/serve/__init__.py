"""A model that is asked, taught and corrected while it is served, and of which nothing is lost.

Imports `store`, `explain` and the rooms below; only `cli` opens it. Begin with `desk`, the live model and its one
writer; `journal` is the SQLite file beside the model in which every operation stands before it is acknowledged, and
knows nothing of models.
An *operation* is one change that a person or program asked for, with its number; a *standing* is what a kept row is
just now: counted under a label, in the pool, skipped or gone. To *fold* is to write the model file anew.
"""
