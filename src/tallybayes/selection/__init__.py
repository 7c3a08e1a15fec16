"""What rows not seen say: splits, folds by subtraction, leave-one-out, and everything chosen or measured by them.

Imports `model` and the rooms below. Begin with `splits` (which row is in which part), then `folds` (tallies by part:
every row counted once, a fold scored by the total less the fold). `parts` is `tb.split` and the `Plan` of a
cross-validation, `leave_one_out` takes each row out by itself. `settings_at_once` and `word_grid` score many settings
over the same folds. `choose` picks settings, `measure` gives figures with intervals, `sets` scores rows for prediction
sets, `rivals` runs other classifiers beside ours, `audit` finds labels and sources of rows that the others contradict,
`over_time` asks what changed from period to period.
"""
