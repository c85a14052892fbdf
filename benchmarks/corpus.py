"""Python files to document: drawn with a fixed seed from the packages that are installed beside the running Python.

python benchmarks/corpus.py COUNT FOLDER
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("torch", "sympy", "numpy", "networkx")
"""Packages from which files are drawn, besides the standard library."""
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    size = draw(chosen.count, chosen.folder)
    print(f"{chosen.count:,} files, {size / 1e6:.1f} MB")


def draw(count: int, folder: Path) -> int:
    """Copy files below a folder, and give their size.

    The first thousand of five thousand are the thousand that are drawn alone. When there are not as many as are wanted, all are taken
    again, below a folder of their own and with one line more, so that no two files are alike.
    """
    found = [(name, root, path) for name, root in places() for path in python_files(root)]
    random.Random(SEED).shuffle(found)
    size = 0
    for number in range(count):
        name, root, path = found[number % len(found)]
        copy = number // len(found)
        target = folder / (f"copy{copy}/{name}" if copy else name) / path.relative_to(root)
        data = path.read_bytes() + (f"\n# Copy {copy}.\n".encode() if copy else b"")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        size += len(data)
    return size


def copy_package(name: str, folder: Path) -> int:
    """Copy all Python files of an installed package below a folder, and give their size."""
    root = dict(places())[name]
    size = 0
    for path in python_files(root):
        target = folder / name / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        size += target.write_bytes(path.read_bytes())
    return size


def places() -> Iterator[tuple[str, Path]]:
    """Give the folders from which files are drawn.

    Raises:
        SystemExit: a package is not installed.
    """
    yield "lib", Path(sysconfig.get_path("stdlib"))
    for name in PACKAGES:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise SystemExit(f"the corpus is drawn from {', '.join(PACKAGES)}, and {name} is not installed")
        yield name, Path(found.origin).parent


def python_files(root: Path) -> list[Path]:
    """List the Python files below a folder, without what is installed or compiled there."""
    return sorted(path for path in root.rglob("*.py") if not {"site-packages", "__pycache__"}.intersection(path.relative_to(root).parts))


if __name__ == "__main__":
    main()
