"""Whole real trees come back from their pages byte for byte."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import test

from rankbook import listings
from rankbook.cli import main
from rankbook.embedding import Embedded, embed
from whole import WHOLE

TORCH = importlib.util.find_spec("torch")
TREES = {
    "CPython's Lib/test": Path(test.__file__).parent,
    "torch/testing/_internal": Path(TORCH.origin).parent / "testing/_internal" if TORCH and TORCH.origin else Path("/nowhere"),
}
SHARES = dict.fromkeys(TREES, (1, 1)) if WHOLE else {"CPython's Lib/test": (12, 4), "torch/testing/_internal": (6, 2)}
"""Of how many files that lie in no folder one is taken, and of how many folders."""


@pytest.mark.parametrize("name", TREES)
def test_every_file_comes_back(name, tmp_path):
    """Files of a tree's folders, and some beside them, have a page; its listing gives each back, or the page says why it has none."""
    tree = TREES[name]
    if not tree.is_dir():
        pytest.skip(f"no {name} here")
    share, share_of_folders = SHARES[name]
    folders = sorted(path for path in tree.iterdir() if path.is_dir() and not left_out(path.name))
    beside = [path for path in sorted(tree.glob("*.*"))[::share] if not left_out(path.name)]
    chosen = {path.relative_to(tree).as_posix() for path in (*folders[::share_of_folders], *beside)}
    there = files(tree)
    if sum(not left_out(path) for path in there) < 80:
        pytest.skip(f"only a part of {name} here, as Debian and Ubuntu install it")
    asked = {path for path in there if path in chosen or path.partition("/")[0] in chosen}
    assert main(["gen", *sorted(chosen), "--root", str(tree), "--out", str(tmp_path / "docs"), "--jobs", "2"]) == 0
    pages = sorted((tmp_path / "docs").rglob("*_docs.md"))
    wrong = [problem for page in pages if (problem := compare(page, tmp_path / "docs", tree))]
    assert wrong == []
    sources = {page.relative_to(tmp_path / "docs").as_posix().removesuffix("_docs.md") for page in pages}
    assert sources == {path for path in asked if path in sources or not left_out(path)}
    assert len(sources) > 40


def files(tree: Path) -> set[str]:
    """Give all files of a tree."""
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


def left_out(path: str) -> bool:
    """Say whether a file is no source: what the interpreter made, or what tools keep in hidden folders."""
    return "__pycache__" in path or any(part.startswith(".") for part in path.split("/"))


def compare(page: Path, docs: Path, tree: Path) -> str:
    """Say what is wrong with a page; empty when nothing is."""
    source = page.relative_to(docs).as_posix().removesuffix("_docs.md")
    data = (tree / source).read_bytes()
    found = embed(data)
    if not isinstance(found, Embedded):
        # The reason is prose on the page, so its punctuation may be escaped.
        said = page.read_text(encoding="utf-8").replace("\\", "")
        return "" if found.reason in said else f"{source}: no reason on its page"
    shown = [listing for listing in listings.collect(page, page.name) if listing.about is not None]
    if not data:
        return "" if not shown else f"{source}: an empty file has a listing"
    return "" if len(shown) == 1 and shown[0].data() == data else f"{source}: differs"
