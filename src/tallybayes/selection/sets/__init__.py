"""Conformal prediction sets: how strange rows are to models that have not seen them, and sets of classes from that.

Begin with `calibrate` (`tb.prediction_sets`): each row is scored by the tally without it, by folds, or by models fitted
anew on the other folds. `full` is full conformal prediction, in which the new row itself is counted under every class
in turn. What is kept of the scores, p-values and sets are in `model.sets`, so that answers need no rows. `full` stands
alone: it is loaded only when `exact=True` asks for it.
"""
