"""Listings that do without torch, or its test harnesses, come from a process that has not imported them; all others from one that has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from proving import prove
from rankbook.engines.local import has_gpus
from rankbook.harness.without_torch import may_import_harnesses, may_import_torch
from rankbook.listing import Listing

left_to_listings = pytest.mark.skipif(
    has_gpus(), reason="where there are GPUs, importing the harnesses initialises CUDA: it is left to listings"
)

PAGE = """\
# Two kinds

```python
import sys

def test_without():
    assert "tor" + "ch" not in sys.modules
```

```python
import sys

def test_with():
    assert "torch.distributed" in sys.modules
    assert not any(name.endswith("common" + "_distributed") for name in sys.modules)
```
"""
"""The first listing does not spell the word out, nor the second that of the harnesses: one that does may import it."""
HARNESS = """
```python
import sys

def test_with_harnesses():
    assert {"torch.testing._internal.common_utils", "torch.testing._internal.common_distributed"} < sys.modules.keys()
```
"""
SAME = """
```python
import sys
import torch

def test_in_the_same():
    assert any(name.endswith("common" + "_distributed") for name in sys.modules)
```
"""


@left_to_listings
def test_each_has_what_it_imports(tmp_path):
    """Torch is in memory already for the listing that names it, for no other, and without its harnesses, which neither names."""
    pytest.importorskip("torch")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text(PAGE)
    found = prove(tmp_path, "docs")
    assert [report["outcome"] for report in found.ends().values()] == ["passed"] * 2, found.output


@left_to_listings
def test_who_does_without_harnesses_takes_a_process_that_has_them(tmp_path):
    """The harnesses are there for the listing that names them; what needs torch alone is forked from the same process afterwards."""
    pytest.importorskip("torch.testing._internal.common_distributed")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text("# Two kinds\n" + HARNESS + SAME)
    found = prove(tmp_path, "docs")
    assert [report["outcome"] for report in found.ends().values()] == ["passed"] * 2, found.output


@pytest.mark.parametrize(("inner", "has"), [("import json\nfrom pk import other\n", False), ("import numpy\n", True)])
def test_modules_of_the_project_are_looked_into(tmp_path, inner, has):
    """What a test imports of its own project needs torch where that imports what may bring it, in turn, and not otherwise."""
    pytest.importorskip("torch")
    for name, text in {
        "pyproject.toml": '[tool.rankbook]\nsources = ["tests"]\n[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        "src/pk/__init__.py": "from pk.inner import json\n" if not has else "from . import inner\n",
        "src/pk/inner.py": inner,
        "src/pk/other.py": "",
        "tests/help_it.py": "import pk\n",
        "tests/test_v.py": f"import sys\nimport help_it\n\n\ndef test_v():\n    assert ('tor' + 'ch' in sys.modules) is {has}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert subprocess.run([sys.executable, "-m", "rankbook", "gen"], cwd=tmp_path, check=False).returncode == 0
    words = [sys.executable, "-m", "pytest", "-q", "--doctest-glob=*.md", "docs", "-k", "test_v"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1].startswith("2 passed"), done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1\n",
        "import os\nimport sys, json as j\n",
        "from collections.abc import Iterator\nimport os.path\n",
        "def f():\n    import pytest\n    from _pytest.outcomes import Skipped\n",
        "import multiprocessing as mp, time\n",
        ">>> import math\n>>> math.pi > 3\nTrue\n",
        "from . import beside\n",
    ],
)
def test_listings_that_do_without(text):
    """A listing that imports modules of Python and pytest does without."""
    assert not may_import_torch(listing(text))
    assert may_import_torch(listing(text), {"beside.py": b"import deepspeed\n"})
    assert may_import_torch(listing(text, ranks="2"))
    assert may_import_torch(listing(text, fixtures="mesh"))


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n",
        "import torch.distributed as dist\n",
        "def f():\n    from torch import nn\n",
        "pytest.importorskip('torch')\n",
        "__import__('torch')\n",
        "import deepspeed\n",
        "import os, deepspeed\n",
        "if True:\n    from megatron.core import mpu\n",
        "try:\n\timport numpy\nexcept ImportError:\n\tpass\n",
        ">>> from lightning import Trainer\n",
        ">>> def f():\n...     import helpers\n",
        "from .helpers import torch_rank\n",
    ],
)
def test_listings_that_may_import_it(text):
    """A listing that names torch, or imports what is not plainly free of it, may import it."""
    assert may_import_torch(listing(text))


def test_modules_that_stand_beside_a_listing():
    """A module whose page shows that it does without torch is no reason for it; one that is installed besides may be another."""
    beside = {"suite/common_base.py": b"import unittest\n", "suite/kit/__init__.py": b""}
    assert may_import_torch(listing("from common_base import Base\n"))
    assert not may_import_torch(listing("import kit\nfrom common_base import Base\n"), beside)
    assert may_import_torch(listing("import common_base, common_other\n"), beside)
    assert may_import_torch(listing("import numpy\n"), {"suite/numpy.py": b""})


def listing(text: str, **options: str) -> Listing:
    """A listing of Python."""
    return Listing(page="p.md", name="l", language="python", text=text, line=1, first_line=2, options=options)


@pytest.mark.parametrize(
    "text", ["import torch\n", "# testing\nfrom torch import nn\n", "import deepspeed\n", "from .common import rank\n"]
)
def test_listings_without_harnesses(text):
    """A listing that names none of torch's test harnesses does without them, unless a file beside it does."""
    assert not may_import_harnesses(listing(text))
    assert may_import_harnesses(listing(text), [b"from torch.testing._internal import common_utils\n"])


@pytest.mark.parametrize(
    "text", ["from torch.testing._internal.common_utils import TestCase\n", "import common_distributed\n", "import expecttest\n"]
)
def test_listings_with_harnesses(text):
    """A listing that names one may import it."""
    assert may_import_harnesses(listing(text))
