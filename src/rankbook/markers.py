"""The places on a page that the site fills with what only the ledger knows, and what stands there for a reader who is not on the site."""

from __future__ import annotations

LAST_RUN = "last-run"
ROLLUP = "proof"
"""Names of the markers that what the ledger knows replaces."""
LAST_RUN_NOTE = "The site shows here how the listings of this page ended when they were last run."
"""What a page says in the place of the outcomes."""
LAST_RUN_MARKER = f"<!-- rankbook:{LAST_RUN} -->"
"""Line of a page that the site replaces by the recorded outcomes."""
PROOF_NOTE = "The site shows here which tests here and below were really run, on which machines, and how they ended."
"""What a page of a folder says in the place of the sums over all runs."""
PROOF_MARKER = f"<!-- rankbook:{ROLLUP} -->"
"""Line of a page that the site replaces by these sums."""
ENGLISH = 'lang="en" dir="ltr"'
"""What an element says whose text is rankbook's own, on a site of whatever language."""
