"""The Numba twins of the hot loops; a readable road stands beside each of them and a test says that they agree.

Imports `base` and what of `exact` lies below. Begin with `gate`, the only way in: it imports Numba when a batch repays
it. `compiling` makes kernels and keeps them on disk, `llvm` has what is written in LLVM by hand. Nothing else in the
package imports numba or llvmlite.
"""
