"""A project whose book shows everything that a page can hold: each way in which a test stands, long names, charts, a forge."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ledgers import CPU, TWO_GPUS, run
from rankbook.config import Settings
from rankbook.ledger import Ledger
from rankbook.listing import Outcome, RankEnd, Receipt, Run
from tiny_site import build, write_project

LONG = "AVeryLongNameWithoutAnySpaceThatDoesNotFitIntoThePhonesWidthBecauseNobodyBrokeItIntoSeveralShorterWords"
STATES = "suite/test_states.py"
LONGEST = f"suite/{LONG.lower()}/test_{LONG.lower()}.py"
_ENDS = (
    RankEnd("rank 0", None, 0.25, 4.1, 0.7, called=f"all_reduce ({LONG}.py:40)", called_at=2.3),
    RankEnd("rank 1", -9, 0.31, 2.2, 0.9, called=f"all_gather_object ({LONG}.py:38)", called_at=1.9),
    RankEnd("rank 2", 0, 0.3, 3.9, 0.8, called=f"barrier ({LONG}.py:36)", called_at=1.4),
)
_RECEIPT = Receipt(_ENDS, world_size=3, backend="gloo", device="cpu")
_HEARD = f"rank 1 died by SIGKILL 2.2 s after its start; rank 0 waits in all_reduce ({LONG}.py:40)"

STANDINGS: dict[str, list[dict[str, object]]] = {
    "passed": [{}],
    "passed_on_two_gpus": [{"machine": TWO_GPUS, "ranks": 2, "duration": 62.0}],
    "failed": [{}, {"outcome": Outcome.FAILED, "reason": f"AssertionError: {LONG} is not 7", "day": 20}],
    "crashed": [{"outcome": Outcome.CRASHED, "reason": _HEARD, "ranks": 3, "receipt": _RECEIPT}],
    "hung": [{"outcome": Outcome.HUNG, "reason": "it had not ended after 300 s", "ranks": 3, "receipt": _RECEIPT}],
    "skipped": [{"outcome": Outcome.SKIPPED, "reason": "needs 4 GPUs", "needs": ("4 GPUs",)}],
    "vacuous": [{"outcome": Outcome.VACUOUS, "reason": "no rank ran it"}],
    "degenerate": [{"outcome": Outcome.DEGENERATE, "reason": "ran on one rank"}],
    "given_up": [{"outcome": Outcome.NOT_RUN, "reason": "another test had failed before it"}],
    "declared": [{"machine": f"{CPU}; declared: 2 × NVIDIA H200"}],
    "expected": [{"outcome": Outcome.SKIPPED, "reason": "expected to fail: slow"}],
    "changed": [{"listing": "bb" * 32}],
    "flaky": [{"day": day, "outcome": Outcome.FAILED if day % 2 else Outcome.PASSED} for day in range(1, 9)],
    "never": [],
}
"""How each test of one file stands, by its runs."""
WORDS = (
    "passed", "failed", "crashed", "hung", "skipped", "vacuous", "degenerate", "not run", "no proof", "failed as expected", "older version",
)  # fmt: skip
"""What the badges of that file say."""

GUIDE = f"""\
# A guide made by a person

Text with `code`, a [link](book/index.md), a [line](book/{STATES}_docs.md#__codelineno-source-3) and {LONG}.

!!! note "An admonition"
    What it says.

=== "One tab"

    | Name | What it is |
    | --- | --- |
    | `{LONG}` | {LONG} |

=== "Another tab"

    ```python
    print("{LONG} in a listing that is as wide as it likes to be")
    ```

??? tip "What opens"
    What it holds.

## How it last ended

<!-- rankbook:last-run -->
"""


def _states() -> str:
    tests = "\n\n".join(f'    def test_{name}(self):\n        """It is {name}."""\n        self.assertTrue({name!r})' for name in STANDINGS)
    return (
        f'# Owner(s): ["oncall: {LONG}", "oncall: distributed"]\n"""Tests of which each stands in another way."""\n\n'
        f"import unittest\n\nimport torch.distributed as dist\n\n\nclass TestStates(unittest.TestCase):\n{tests}\n"
    )


def _long() -> str:
    return (
        f'"""{LONG}: a <b>title</b> | of a file."""\n\nimport pytest\n\n\n@pytest.mark.slow\nclass Test{LONG}:\n    """{LONG}."""\n\n'
        f'    @pytest.mark.parametrize("{LONG.lower()}", ["{LONG}", "{LONG} " * 3])\n'
        f'    def test_{LONG.lower()}(self, {LONG.lower()}):\n        """{LONG}."""\n        assert "{LONG}, {LONG}, {LONG}, {LONG}"\n'
    )


def write(root: Path) -> Path:
    """Write the project with its ledger; give its root."""
    write_project(root)
    sources = {STATES: _states(), LONGEST: _long()}
    sources |= {f"suite/many/test_{number:02}.py": f"def test_number_{number}():\n    assert {number} >= 0\n" for number in range(12)}
    for path, text in sources.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "docs/index.md").write_text("# A tiny project\n\nIts [suite](book/index.md).\n\n<!-- rankbook:proof -->\n")
    (root / "docs/guide.md").write_text(GUIDE)
    settings = (root / "mkdocs.yml").read_text()
    (root / "mkdocs.yml").write_text(settings.replace("- index.md\n", "- index.md\n- guide.md\n"))
    for arguments in (["init", "--quiet", "--initial-branch=main"], ["remote", "add", "origin", "https://github.com/owner/name"]):
        subprocess.run(["git", "-C", os.fspath(root), *arguments], check=True)
    Ledger(root / Settings().ledger).record(_runs(sources))
    return root


def _runs(sources: dict[str, str]) -> Iterator[Run]:
    for name, recorded in STANDINGS.items():
        for place, values in enumerate(recorded):
            yield _run(sources, STATES, f"TestStates::test_{name}", **{"day": place + 10, **values})
    yield _run(sources, LONGEST, f"Test{LONG}::test_{LONG.lower()}[{LONG}]", outcome=Outcome.FAILED, reason=f"{LONG}\n{LONG}")
    for path in sources:
        if path.startswith("suite/many/test_0"):
            yield _run(sources, path, f"test_number_{int(path[-5:-3])}", duration=1.5)


def _run(sources: dict[str, str], source: str, name: str, *, day: object = 19, **values: object) -> Run:
    listing = hashlib.sha256(sources[source].encode()).hexdigest()
    known = {"listing": listing, "source": source, "when": f"2026-11-{day:0>2}T10:00:00+00:00", "torch": "2.13.0", "case": {"id": name}}
    return run(f"docs/book/{source}_docs.md::{name}", **{**known, **values})  # type: ignore[arg-type]


def build_site(root: Path) -> Path:
    """Write the project and build its site strictly; give the site's folder."""
    return build(write(root))
