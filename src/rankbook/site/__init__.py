"""The site: generated pages in the shell that an engine has built, with what only the ledger knows."""

from __future__ import annotations

from rankbook.site.assets import script, style
from rankbook.site.history import Recorded, beat
from rankbook.site.navigation import expanded, listed
from rankbook.site.outcomes import NOT_RUN, last_runs
from rankbook.site.proof import PageProof, Proof
from rankbook.site.standing import Standing

__all__ = [
    "NOT_RUN",
    "PageProof",
    "Proof",
    "Recorded",
    "Standing",
    "beat",
    "expanded",
    "last_runs",
    "listed",
    "script",
    "style",
]
