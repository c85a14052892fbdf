"""The long fuzzer: hostile and mutated sources and pages, each made into pages, a site, a search and an inventory, and all of that checked.

    python benchmarks/fuzz.py [CORPUS] [--inputs 10000] [--seed 0] [--files 8] [--keep FOLDER]

CORPUS is a folder of real files to mutate; without it, those of this repository are taken. A round makes one tree, and its seed is all that
there is to know of it: `--seed N --inputs 1` makes round N again. The trees of rounds that fail are kept in FOLDER. What a round is, says
its seed: every fourth tree has a tame twin of the same shape, with which each page is compared; every fourth consists of files of all
kinds; every fourth is of mutated real files; every fourth changes a few times, and is compared with one that is made at once. Exits with
1 when anything was found.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT / "tests"))

import checked_books  # noqa: E402 - it lies among the tests
import hostile  # noqa: E402 - as above
import watching  # noqa: E402 - as above
from rankbook.listings import Site, site_of  # noqa: E402 - as above

_PACKS = ("rankbook", "repository", "repo-book")
_LARGEST = 200_000
"""Bytes of a file that is mutated."""
_SLOW = 30.0
"""CPU seconds of a round that is told of."""


def main() -> int:
    """Run rounds until there were as many inputs as asked for."""
    chosen = _options()
    os.nice(10)
    originals = list(_originals(chosen.corpus))
    counts: Counter[str] = Counter()
    started = time.monotonic()
    seed = chosen.seed
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RANKBOOK_CACHE_DIR"] = f"{folder}/cache"
        checked_books.shell()
        while counts["inputs"] < chosen.inputs:
            top = Path(folder, "round")
            top.mkdir()
            cpu = time.process_time()
            found = list(_round(top, seed, originals, chosen.files, counts))
            cpu = time.process_time() - cpu
            if cpu > _SLOW:
                found.append(f"it took {cpu:.0f} CPU seconds")
            for problem in found:
                print(f"seed {seed}: {problem}", flush=True)
            counts["rounds"] += 1
            counts["failed"] += bool(found)
            if found and chosen.keep:
                shutil.copytree(top, chosen.keep / str(seed), symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(top)
            shutil.rmtree(f"{folder}/cache", ignore_errors=True)
            seed += 1
            if counts["rounds"] % 50 == 0:
                so_far = f"{counts['inputs']:,} inputs, {counts['failed']} rounds failed, {time.monotonic() - started:.0f} s"
                print(f"… {so_far}; next seed {seed}", flush=True)
    said = ", ".join(f"{number:,} {name}" for name, number in counts.items())
    print(f"{said}; {time.monotonic() - started:.0f} s, {time.process_time():.0f} CPU s; next seed {seed}")
    return 1 if counts["failed"] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", nargs="?", type=Path, default=_ROOT, help="folder of real files to mutate")
    parser.add_argument("--inputs", type=int, default=10_000, help="sources and pages to try")
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--files", type=int, default=8, help="sources of a round")
    parser.add_argument("--keep", type=Path, help="folder for the trees of rounds that fail")
    return parser.parse_args()


def _originals(corpus: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(corpus.rglob("*")):
        below = path.relative_to(corpus).parts
        if any(part.startswith(".") or part in {"site", "docs", "__pycache__"} for part in below):
            continue
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST:
            yield path.name, path.read_bytes()


def _round(top: Path, seed: int, originals: list[tuple[str, bytes]], files: int, counts: Counter[str]) -> Iterator[str]:
    pack = _PACKS[seed // len(_KINDS) % len(_PACKS)]
    try:
        with watching.watched() as written:
            book, found = _KINDS[seed % len(_KINDS)](top, seed, originals, files, pack)
            yield from found
            counts["inputs"] += files
            yield from _pages(book, seed, counts)
        ruff = f"{tempfile.gettempdir()}/rankbook-findings-"
        allowed = (str(top.resolve()), os.path.realpath(os.environ["RANKBOOK_CACHE_DIR"]), ruff)
        strangers = {path for path in written if not path.startswith(allowed) and not path.startswith(("/dev/", "/proc/"))}
        if strangers:
            yield f"it has written {sorted(strangers)[:3]}"
    except Exception:  # noqa: BLE001 - whatever it is, it is found
        counts["inputs"] += files
        yield traceback.format_exc()


def _with_twin(top: Path, seed: int, _: object, files: int, pack: str) -> tuple[checked_books.Book, list[str]]:
    made = []
    for name, is_hostile in (("hostile", True), ("tame", False)):
        tree = hostile.tree(seed, hostile=is_hostile, files=files, suffixes=(".py",))
        made.append(checked_books.make(top / name, tree, hostile.runs_of(tree, seed, hostile=is_hostile), pack=pack))
    return made[0], list(checked_books.problems(made[0], made[1], engines=0.2, seed=seed))


def _of_all_kinds(top: Path, seed: int, _: object, files: int, pack: str) -> tuple[checked_books.Book, list[str]]:
    tree = hostile.tree(seed, files=files)
    book = checked_books.make(top / "tree", tree, hostile.runs_of(tree, seed, is_timed=False), pack=pack)
    return book, list(checked_books.problems(book, engines=0.3, seed=seed))


def _of_real_files(top: Path, seed: int, originals: list[tuple[str, bytes]], files: int, pack: str) -> tuple[checked_books.Book, list[str]]:
    tree = hostile.mutated_tree(originals, seed, files=files)
    book = checked_books.make(top / "tree", tree, hostile.runs_of(tree, seed), pack=pack)
    return book, list(checked_books.problems(book, engines=0.1, seed=seed))


def _that_changes(top: Path, seed: int, _: object, files: int, pack: str) -> tuple[checked_books.Book, list[str]]:
    found = list(checked_books.differences(seed, top, pack=pack, files=files))
    return checked_books.Book(top / "new", {}, pack), found


_KINDS = (_with_twin, _of_all_kinds, _of_real_files, _that_changes)


def _pages(book: checked_books.Book, seed: int, counts: Counter[str]) -> Iterator[str]:
    """Take a few pages as input, changed by anybody."""
    choose = random.Random(f"pages {seed}")
    for number, (path, page) in enumerate(choose.sample(sorted(book.pages.items()), 3)):
        counts["inputs"] += 1
        counts["pages"] += 1
        for problem in checked_books.page_problems(page, f"{seed} {number}"):
            yield f"{path!r}, changed: {problem}"
        if len(page) < 20_000:
            checked_books.collected(page, f"{seed} {number}", _site())


@cache
def _site() -> Site:
    return site_of(_ROOT / "docs/index.md")


if __name__ == "__main__":
    sys.exit(main())
