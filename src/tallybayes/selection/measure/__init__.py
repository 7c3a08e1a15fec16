"""How good a model is on rows it has not seen. Begin with `cross_validate`, then `evaluation`, which it gives.

`metrics` are plain functions of labels and probabilities (`tb.metrics`), `curves` their curves, `bootstrap` intervals.
"""
