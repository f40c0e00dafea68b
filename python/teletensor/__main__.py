"""`python -m teletensor` is the command `teletensor`, where the folder of scripts is not on the PATH."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
