"""What a pytest over listings does without: each listing has one of its own, so what one of them takes at its end is taken as often."""

from __future__ import annotations

import sys

import pytest

_HYPOTHESIS = "hypothesispytest"
"""Name under which it registers."""


class Unused:
    """Plugin that takes Hypothesis out of a session before the summary, where no test has imported it.

    Its plugin imports all of Hypothesis there, which takes about a second, to find that there is nothing to say.
    """

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Take it out; the terminal calls for summaries after this."""
        plugins = session.config.pluginmanager
        if "hypothesis" not in sys.modules and plugins.has_plugin(_HYPOTHESIS):
            plugins.unregister(name=_HYPOTHESIS)
