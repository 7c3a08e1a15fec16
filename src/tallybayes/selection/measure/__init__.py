"""How good a model is on rows it has not seen.

Begin with `saved` (`tb.evaluate`, `tb.compare_models`) and `cross_validate`, then `evaluation`, what they give. `refit`
is the one loop that fits anew for each fold, for cross-validation and for the rivals; `fit_again` fits as a model was
fitted. `metrics` are plain functions of labels and probabilities (`tb.metrics`), `curves` their curves, `bootstrap`
their intervals; `figure_curves` are figures against the number of rows or a setting. `importance` says what each column
is worth, by what rows lose without it (`left_out`); `neighbours` says where folds part rows that are alike.
"""
