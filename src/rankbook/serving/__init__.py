"""The book while somebody works on it: `mkdocs serve` shows what is saved without a build by the engine.

The engine builds what people wrote, once at the start and whenever that changes. A generated page is put into the site when a browser
asks for it. What the pages are made from is watched here: after a change of a source, a template or the ledger the pages on disk are
brought up to date and the browsers told to load theirs again. When something is wrong, all that was right before stays, under a note that
says what it is.
"""

from __future__ import annotations

from rankbook.serving.attaching import attach
from rankbook.serving.live import Live, Opened
from rankbook.serving.watch import Watch
from rankbook.serving.window import Window

__all__ = ["Live", "Opened", "Watch", "Window", "attach"]
