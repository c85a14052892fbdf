"""The pytest door: `pytest --doctest-glob='*.md' docs/` gives an item for each listing of a page and for each test that a listing holds.

A run that comes across no page knows rankbook's options, and loads nothing more of it.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator, Iterable
from typing import Any

import pytest

from rankbook import pytest_import  # noqa: F401  first of all: what is imported below is imported by it
from rankbook.config import ENGINES
from rankbook.page_names import SUFFIXES
from rankbook.pytest_private import GIVEN
from rankbook.pytest_settings import called_by, is_for_tests, known, options_of

_OPTIONS = (
    "engine", "ray_address", "listing_jobs", "listing_timeout", "source_path", "gpus", "no_plan", "require", "canary", "stale",
    "fail_on_debt", "update_output", "listings_report",
)  # fmt: skip
"""Where the options below are kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("rankbook", "rankbook: listings of Markdown pages")
    add = group.addoption
    add("--engine", choices=ENGINES, help=f"where listings run: {', '.join(ENGINES)} (default: the setting 'engine', else local)")
    add("--ray-address", metavar="ADDRESS", help="Ray cluster of the engine ray (default: one on this machine)")
    add("--listing-jobs", type=int, metavar="N", help="listings that run at the same time; 0 for one per core")
    add("--listing-timeout", type=float, metavar="SECONDS", help="seconds that a listing, or one test of it, may take")
    add("--source-path", action="append", metavar="DIR", help="source tree that has files without a page (repeatable)")
    add("--gpus", metavar="GPUS", help="GPUs that listings may use, declared instead of asked for: 8, '2 x H200'")
    add("--no-plan", action="store_true", help="start tests also where their page says that they cannot run")
    add(
        "--require", action="append", metavar="NEED", help="fail what is skipped for a need that this machine must meet: gpu=2 (repeatable)"
    )
    add("--canary", metavar="SHARE", help="run a share of the tests again by new interpreters, and compare: 2%%")
    add("--stale", action="store_true", help="run only what the ledger does not prove")
    add("--fail-on-debt", action="store_true", help="fail when a listing or a test has never really run, or not since it changed")
    add("--update-output", action="store_true", help="rewrite the expected outputs that differ")
    add("--listings-report", metavar="FILE", help="write the count of listings by outcome as JSON")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> Generator[None, None, None]:
    """Tell which options of the command line are those of conftest files: the listings' own pytest is to have them, too."""
    _, unknown = parser.parse_known_and_unknown_args(list(args))
    yield
    _, left = parser.parse_known_and_unknown_args(list(args))
    if any(word.startswith("-") for word in left) and _may_meet_pages(early_config.known_args_namespace, args):
        from rankbook import conftest_options  # seldom needed

        conftest_options.define(parser, left, early_config.rootpath)
    words = called_by(early_config.invocation_params.args)
    options = [known(parser, option) for option in options_of(words) if option[0] in unknown or is_for_tests(option[0])]
    early_config.stash[GIVEN] = [words, [option for option in options if option]]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist what the command line says, and how tests are dealt out: its own configuration has another word for that."""
    node.workerinput["rankbook_given"] = node.config.stash.get(GIVEN, ([], []))
    node.workerinput["rankbook_dist"] = node.config.option.dist


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep the items of one page together under xdist unless the user says otherwise: a page's tests share one process."""
    option = config.option
    if getattr(option, "numprocesses", None) and getattr(option, "dist", None) == "no" and option.doctestglob:
        option.dist = "loadfile"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load what shows and runs listings, if the run may come across a page."""
    if _may_meet_pages(config.option, config.args):
        from rankbook import pytest_pages  # a plain run of pytest is not to wait for it

        config.pluginmanager.register(pytest_pages, "rankbook-pages")


def _may_meet_pages(option: Namespace, words: Iterable[str]) -> bool:
    """Tell whether a glob or a path of the command line may name a page, or an option of ours is given."""
    if getattr(option, "doctestglob", None) or any(getattr(option, name, None) not in (None, False) for name in _OPTIONS):
        return True
    return any(suffix in word.lower() for word in words for suffix in SUFFIXES)
