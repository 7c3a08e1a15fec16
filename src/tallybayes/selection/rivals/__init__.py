"""Other classifiers beside ours on the same folds. Begin with `compare`.

`rivals` are written here (nearest neighbours, exact match, majority), `logistic_twin` is the discriminative twin of a
model, `peers` are scikit-learn's estimators where it is installed.
"""
