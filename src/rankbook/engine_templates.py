"""The templates of MkDocs' theme, taken as an earlier build compiled them: half of what the engine does for a small site is to compile.

What a build gives does not depend on it. An environment that is not as the engine makes it compiles its templates as ever: with a filter
that a hook has put there, what is constant in a template may change though neither the template nor what is installed does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from jinja2.bccache import Bucket

from rankbook.compiled import Compiled, kept

if TYPE_CHECKING:
    from jinja2 import Environment
    from mkdocs.theme import Theme

_COPIED = ("filters", "tests", "policies", "extensions")
_OF_NO_MATTER = frozenset({"globals", "loader", "cache", "bytecode_cache", "auto_reload"})
"""What may differ between environments that compile a template alike."""


class _OfEngine(Compiled):
    """Compiled templates for one environment, as long as it is as the engine has made it."""

    _made: dict[str, Any]

    def serve(self, environment: Environment) -> None:
        """Give an environment what was compiled before, and take what it compiles."""
        self._made = _state(environment)
        extensions = sorted(environment.extensions)
        self._made_by += f"\0{extensions}\0{getattr(environment, 'newstyle_gettext', None)}"
        environment.bytecode_cache = self

    def get_bucket(self, environment: Environment, name: str, filename: str | None, source: str) -> Bucket:
        """Find a template; one that is not to be kept has no key."""
        if _state(environment) != self._made:
            return Bucket(environment, "", "")
        return super().get_bucket(environment, name, filename, source)

    def set_bucket(self, bucket: Bucket) -> None:
        """Keep a template that has a key."""
        if bucket.key:
            super().set_bucket(bucket)


def take_compiled(theme: Theme) -> None:
    """Let the environments that the engine makes for a theme take templates as they were compiled before."""
    make = theme.get_env
    code = getattr(getattr(make, "__func__", None), "__code__", None)
    engine = sys.modules[type(theme).__module__]
    if code is None or code.co_filename != engine.__file__:  # somebody has put something else in its place
        return

    def get_env() -> Environment:
        environment = make()
        compiled = kept("_engine", _OfEngine)
        if compiled is not None:
            compiled.serve(environment)
        return environment

    theme.get_env = get_env  # type: ignore[method-assign]


def _state(environment: Environment) -> dict[str, Any]:
    """Tell all that has a part in how an environment compiles a template."""
    found = {name: value for name, value in vars(environment).items() if name not in _OF_NO_MATTER}
    return found | {name: dict(found[name]) for name in _COPIED}
