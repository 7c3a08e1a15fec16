"""`python -m tallybayes` is the command `tallybayes`."""

from .cli import main

if __name__ == "__main__":
    main()
