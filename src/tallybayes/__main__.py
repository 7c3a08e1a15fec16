"""`python -m tallybayes` is the command `tallybayes`."""

import sys

from .cli import main

sys.exit(main())
