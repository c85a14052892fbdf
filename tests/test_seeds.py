"""Five pages of real multi-GPU tests, made by other generators: every listing ends as it must on a machine without GPUs."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from proving import prove
from rankbook import machine

SHARED = Path(os.environ.get("RANKBOOK_SHARED", Path(__file__).parents[2] / "shared"))
SEEDS = SHARED / "seeds"

needs_no_gpu = pytest.mark.skipif(machine.hardware().find("×") >= 0, reason="the outcomes are those of a machine without GPUs")
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"no seed pages at {SEEDS}")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """The five pages, proved without any source tree."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("seeds")
    shutil.copytree(SEEDS, folder / "seeds")
    return prove(folder, "seeds")


TITLES = {
    "__init__": "seeds/__init__.py_docs.md_docs.md",
    "p2p": "seeds/repo-book.test_p2p_ipc.py_docs.md",
    "pypg": "seeds/test_c10d_pypg.py_docs.md",
    "gloo": "seeds/test_c10d_spawn_gloo.py_docs.md_docs.md",
    "cupy": "seeds/test_cupy_as_tensor.py_docs.md",
}
NO_P2P = "cuda p2p access is not available"
CUT = "the site ends this listing at line"
ALONE = [
    ("__init__", "__init__.py_docs.md", "failed", CUT),
    ("__init__", "__init__.py_docs.md::__init__.py", "passed", ""),
    ("__init__", "__init__.py_docs.md::testing-2", "passed", ""),
    ("__init__", "testing", "failed", "exit status 1: python docs/torch/testing/"),
    ("p2p", "P2PIpcTest::test_p2p_ipc", "skipped", NO_P2P),
    ("cupy", "CupyAsTensorTest::test_cupy_as_tensor", "skipped", NO_P2P),
    ("cupy", "testing", "skipped", NO_P2P),
    ("pypg", "test_c10d_pypg.py", "failed", "No module named 'test_c10d_common'; no page shows test/distributed/test_c10d_common.py"),
    ("pypg", "testing", "failed", "No module named 'test_c10d_common'"),
    ("gloo", "test_c10d_spawn_gloo.py_docs.md", "failed", CUT),
    ("gloo", "test_c10d_spawn_gloo.py_docs.md::test_c10d_spawn_gloo.py", "failed", "No module named 'test_c10d_spawn'"),
    ("gloo", "test_c10d_spawn_gloo.py_docs.md::testing-2", "failed", "No module named 'test_c10d_spawn'"),
    ("gloo", "testing", "failed", "exit status 1: python docs/test/distributed/"),
]


@needs_no_gpu
def test_alone(seeds):
    """Without their siblings the pages say what is missing; a fence that breaks the page, and a command that runs Markdown, fail."""
    found = seeds.ends()
    expected = {f"{TITLES[page]}::{name}": (outcome, reason) for page, name, outcome, reason in ALONE}
    assert {node: report["outcome"] for node, report in found.items()} == {node: outcome for node, (outcome, _) in expected.items()}
    for node, (_, reason) in expected.items():
        assert reason in found[node]["text"], node


def test_a_missing_sibling_is_found_at_its_line(seeds):
    """The failure of a missing import stands at the import statement of the page."""
    report = seeds.ends()["seeds/test_c10d_pypg.py_docs.md::test_c10d_pypg.py"]
    line = int(report["text"].split(":", 2)[1])
    assert (SEEDS / "test_c10d_pypg.py_docs.md").read_text().splitlines()[line - 1] == "import test_c10d_common"


@needs_no_gpu
@pytest.mark.skipif("RANKBOOK_PYTORCH" not in os.environ, reason="RANKBOOK_PYTORCH names no PyTorch 2.6 source tree")
def test_with_siblings(tmp_path):
    """With the tree that holds the siblings, all 61 tests are there, and end as PyTorch's own run of them does on a CPU."""
    shutil.copytree(SEEDS, tmp_path / "seeds")
    result = prove(tmp_path, "seeds", "--noconftest", f"--source-path={os.environ['RANKBOOK_PYTORCH']}")
    tests = [(node, outcome) for node, outcome in result.outcomes().items() if "::Test" in node or "Test::" in node]
    count = {page: Counter(outcome for node, outcome in tests if node.startswith(title)) for page, title in TITLES.items()}
    assert count["pypg"] == {"passed": 12, "skipped": 36}
    assert count["gloo"] == {"passed": 1, "skipped": 10}
    assert count["p2p"] == count["cupy"] == {"skipped": 1}
