"""Make the pages of a source tree: the same as `rankbook gen`, from a checkout that need not be installed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from rankbook.cli import main

if __name__ == "__main__":
    sys.exit(main(["gen", *sys.argv[1:]]))
