"""Fixtures of pytest for a listing that is a program: set up before it, torn down after it, under their own names in it.

The conftest files on the way from the page up to the root of the project are read, as for a test file in the page's place.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from rankbook.harness import script
from rankbook.harness.unused import Unused

Failure = dict[str, Any]
"""What is wrong with a listing, as its report says it."""

OPTIONS = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:rankbook", "-o", "addopts=", "-o", "filterwarnings=")
"""The listing's own output is nobody else's, and its warnings are its own; options of the project are for the project's tests."""
LEFT_OUT = "PYTEST_"
"""Variables of the surrounding pytest that the inner one must not see."""


def with_fixtures(arguments: Mapping[str, Any], body: Callable[[Mapping[str, Any]], Failure | None]) -> Failure | None:
    """Set fixtures up, run a listing, and tear them down.

    Args:
        arguments: of its program: `fixtures` are their names, `page` is its page, `top` the root of the project.
        body: runs the listing with the fixtures by name; gives what is wrong.

    Returns:
        What is wrong with the listing or with a fixture; None when nothing is.
    """
    page, top = Path(arguments["page"]), Path(arguments["top"])
    for name in [name for name in os.environ if name.startswith(LEFT_OUT)]:
        del os.environ[name]
    plugin = _Plugin(arguments["fixtures"], page, top, body, sys.stdout)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = int(pytest.main([*OPTIONS, "--rootdir", str(top), str(page)], plugins=[plugin, Unused()]))
    if plugin.failure or plugin.has_run:
        return plugin.failure
    last = [line.removeprefix("E ").strip() for line in said.getvalue().strip().splitlines()[-1:]]
    reason = ": ".join((f"its fixtures cannot be set up, for pytest ended with status {status}", *last))
    return {"outcome": "failed", "reason": reason, "text": said.getvalue()}


class _Page(pytest.File):
    """The page, as pytest collects it."""

    plugin: _Plugin

    def collect(self) -> Sequence[pytest.Item]:
        """Give the listing as a test function that takes the fixtures."""
        return [pytest.Function.from_parent(self, name="listing", callobj=self.plugin.function())]


class _Plugin(Struct, eq=False):
    """Plugin of the inner pytest: collects the listing alone and keeps what becomes of it.

    Args:
        fixtures: names of fixtures.
        page: the page.
        top: root of the project.
        body: runs the listing.
        stream: where the listing prints.
    """

    fixtures: Sequence[str]
    page: Path
    top: Path
    body: Callable[[Mapping[str, Any]], Failure | None]
    stream: Any
    failure: Failure | None = None
    has_run: bool = False

    def function(self) -> Callable[..., None]:
        """Make a function with a parameter for each fixture."""

        def listing(**given: Any) -> None:
            self.has_run = True
            self.failure = self.body(given)

        parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in dict.fromkeys(self.fixtures)]
        listing.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return listing

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take the page."""
        if file_path != self.page:
            return None
        collector: _Page = _Page.from_parent(parent, path=file_path)
        collector.plugin = self
        return collector

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what plugins of the project see on the page."""
        items[:] = [item for item in items if isinstance(item.parent, _Page)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Let the listing and its fixtures print where they should; pytest itself has its own place by now."""
        with contextlib.redirect_stdout(self.stream):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Keep what is wrong with a fixture."""
        del item
        report = yield
        if call.excinfo is not None and self.failure is None:
            self.failure = self._failure(call.excinfo.value, call.when, report)
        return report

    def _failure(self, error: BaseException, when: str, report: Any) -> Failure:
        if isinstance(error, pytest.FixtureLookupError):
            where = f"no conftest.py from {self.page.parent} up to {self.top} and no plugin has it"
            reason = f"there is no fixture '{error.argname}': {where}"
            return {"outcome": "failed", "reason": reason, "text": reason}
        failure = script.failure_of(error, self.page)
        if failure["outcome"] == "failed":
            failure |= {"reason": f"{failure['reason']} (in the {when} of its fixtures)", "text": report.longreprtext}
        return failure
