"""What all tests share: importing the helpers beside them (cases, strategies, shared_data) by name."""

import os

# Tests fit many small models, often side by side, and BLAS threads wait longer for each other on small matrices than
# they work: with them, choosing weights takes several times as long. It must be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
