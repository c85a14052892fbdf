"""Listings that do without torch are forked from a process that has not imported it; all others from one that has."""

from __future__ import annotations

import pytest

from proving import prove
from rankbook.harness.without_torch import may_import_torch
from rankbook.listing import Listing

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
```
"""
"""The first listing does not spell the word out: one that does may import it."""


def test_each_has_what_it_imports(tmp_path):
    """Torch is in memory already for the listing that names it, and is not for the one that does without."""
    pytest.importorskip("torch")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text(PAGE)
    found = prove(tmp_path, "docs")
    assert [report["outcome"] for report in found.ends().values()] == ["passed", "passed"], found.output


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
    assert may_import_torch(listing(text), [b"import deepspeed\n"])
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
        "    from megatron.core import mpu\n",
        "try:\n\timport numpy\nexcept ImportError:\n\tpass\n",
        ">>> from lightning import Trainer\n",
        "...     import helpers\n",
        "from .helpers import torch_rank\n",
    ],
)
def test_listings_that_may_import_it(text):
    """A listing that names torch, or imports what is not plainly free of it, may import it."""
    assert may_import_torch(listing(text))


def listing(text: str, **options: str) -> Listing:
    """A listing of Python."""
    return Listing(page="p.md", name="l", language="python", text=text, line=1, first_line=2, options=options)
