"""`python -m rankbook`, for an environment whose scripts are not on the path."""

import sys

from rankbook.cli import main

if __name__ == "__main__":
    sys.exit(main())
