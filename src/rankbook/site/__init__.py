"""The site: generated pages in the shell that an engine has built, with what only the ledger knows."""

from __future__ import annotations

from rankbook.site.assets import script, style
from rankbook.site.navigation import expanded, listed
from rankbook.site.outcomes import NOT_RUN, last_runs

__all__ = ["NOT_RUN", "expanded", "last_runs", "listed", "script", "style"]
