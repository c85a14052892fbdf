"""Runs pytest over pages as a user does, and gives what it reported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPORTER = """
import json, pathlib
reports = []

def pytest_runtest_logreport(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    reports.append({
        "id": report.nodeid, "when": report.when, "outcome": report.outcome, "wasxfail": getattr(report, "wasxfail", None),
        "text": report.longreprtext, "sections": [list(section) for section in report.sections],
        "line": crash.lineno if crash else None, "longrepr": list(report.longrepr) if isinstance(report.longrepr, tuple) else None,
    })

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        pathlib.Path(session.config.rootpath, "reports.json").write_text(json.dumps(reports))
"""


@dataclass
class Result:
    """What a run of pytest reported."""

    status: int
    output: str
    reports: list[dict] = field(default_factory=list)

    def ends(self) -> dict[str, dict]:
        """Give by node id the report that decides: the first that is not passed, else that of the call."""
        found: dict[str, dict] = {}
        for report in self.reports:
            known = found.get(report["id"])
            if known is None or (known["outcome"] == "passed" and (report["outcome"] != "passed" or report["when"] == "call")):
                found[report["id"]] = report
        return found

    def outcomes(self) -> dict[str, str]:
        """Give the outcome of each item."""
        return {name: report["outcome"] for name, report in self.ends().items()}


def page(folder: Path, name: str, *fences: tuple[str, str]) -> Path:
    """Write a page of fences: info string, text."""
    path = folder / "docs" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# {name}\n" + "".join(f"\n```{info}\n{text}\n```\n" for info, text in fences))
    return path


def prove(folder: Path, *arguments: str, env: dict[str, str] | None = None, timeout: float = 400) -> Result:
    """Run `pytest --doctest-glob='*.md'` in a folder."""
    (folder / "proof_reporter.py").write_text(REPORTER)
    (folder / "pyproject.toml").touch()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "reports.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "--doctest-glob=*.md", "-p", "no:cacheprovider", "-p", "proof_reporter", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]), **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    reports = folder / "reports.json"
    return Result(done.returncode, done.stdout, json.loads(reports.read_text()) if reports.exists() else [])


@dataclass(frozen=True)
class Expected:
    """One line of a case: outcome, end of the node id, line of the failure, part of the reason."""

    outcome: str
    name: str
    line: int | None
    reason: str


def read_case(path: Path) -> tuple[str, list[Expected]]:
    """Split a case file into its page and what is expected of it."""
    page, _, outcomes = path.read_text(encoding="utf-8").partition("\n=== outcomes\n")
    return page + "\n", [expected(line) for line in outcomes.splitlines() if line.strip()]


def expected(line: str) -> Expected:
    """Read `failed  ::name :12 part of the reason`."""
    match = re.fullmatch(r"(\w+)\s+::(\S+)(?: :(\d+))?(?: (.*))?", line)
    assert match, line
    return Expected(match[1], match[2], int(match[3]) if match[3] else None, (match[4] or "").strip())
