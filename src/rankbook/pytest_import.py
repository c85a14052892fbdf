"""Has pytest import rankbook as Python does: it would rewrite the assertions of all modules of a plugin's package.

Those of rankbook are no tests, and where no bytecode is written (`PYTHONDONTWRITEBYTECODE`, usual in images of containers) each run of
pytest would rewrite them again. The name is private to pytest; where it is another one, pytest rewrites.
"""

from __future__ import annotations

import sys

for _finder in sys.meta_path:
    if type(_finder).__name__ == "AssertionRewritingHook":
        getattr(_finder, "_must_rewrite", set()).discard("rankbook")
        getattr(_finder, "_marked_for_rewrite_cache", {}).clear()
