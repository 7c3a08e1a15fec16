"""How good a model is on rows it has not seen.

Begin with `cross_validate` (`tb.evaluate`, `tb.cross_validate`), then `evaluation`, which it gives. `refit` is the one
loop that fits anew for each fold, for cross-validation and for the rivals. `metrics` are plain functions of labels and
probabilities (`tb.metrics`), `curves` their curves, `bootstrap` their intervals; `figure_curves` are
figures against the number of rows or a setting. `importance` says what each column is worth, by what rows lose
without it (`left_out`).
"""
