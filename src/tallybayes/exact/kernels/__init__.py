"""The Numba twins of the hot loops; a readable road stands beside each of them and a test says that they agree.

Imports `base` and what of `exact` lies below. Begin with `gate`, the only way in: it imports Numba when a batch repays
it, and does without where it is absent or not to be trusted. `compiling` makes kernels and keeps them on disk.
`checking` compares each with its own lines read by Python, on the numbers of `probes` and `text_probes`; `llvm` has
what is written in LLVM by hand, `llvm_twins` the same in NumPy. Nothing else in the package imports numba or llvmlite.

`steps` stands alone: a descent is no matter of rows, cells or words, and serves the fits of all of them.
"""
