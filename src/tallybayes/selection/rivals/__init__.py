"""Other classifiers beside ours on the same folds.

Begin with `compare`, which hands every rival to `measure.refit`. `rivals` are written here (majority, exact match), as
is `nearest` (`tb.Nearest`), `logistic_twin` is the discriminative twin of a model, `peers` are scikit-learn's
estimators where it is installed: `tb.compare` offers them, so they live here and not with the benchmarks.
"""
