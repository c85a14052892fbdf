"""Templates as Jinja compiles them, kept in the user's cache, so that the next run need not compile them again."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TypeVar

import jinja2
from jinja2.bccache import Bucket

from rankbook.freshness import cache_base, running

_Kept = TypeVar("_Kept", bound="Compiled")


class Compiled(jinja2.FileSystemBytecodeCache):
    """Compiled templates of one kind of environment; what another rankbook, Jinja or Python has compiled does not count.

    Jinja works out what is constant in a template when it compiles it, with the filters that there are then: so a template is compiled
    again when what runs has changed, and not only when its text has.

    Args:
        folder: where they are kept.
        kind: of the environment, a few letters; of two kinds, neither sees what the other has compiled.
    """

    def __init__(self, folder: str, kind: str) -> None:
        super().__init__(folder, f"__rankbook{kind}_%s.cache")
        self._made_by = hashlib.sha256("\0".join(running()).encode(errors="surrogateescape")).hexdigest()

    def get_source_checksum(self, source: str) -> str:
        """Take the digest of a template's text and of all that has a part in compiling it."""
        return hashlib.sha256(f"{self._made_by}\0{source}".encode(errors="surrogatepass")).hexdigest()

    def set_bucket(self, bucket: Bucket) -> None:
        """Keep a template; where nothing can be written, it is compiled again next time."""
        with suppress(OSError):
            super().set_bucket(bucket)


def kept(kind: str, of: type[_Kept] = Compiled) -> _Kept | None:  # type: ignore[assignment]
    """Open what is kept of a kind of environment, beside what else runs keep; None where nothing can be written.

    Args:
        kind: of the environment.
        of: what gives and takes the templates.
    """
    folder = cache_base() / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return of(str(folder), kind) if os.access(folder, os.W_OK) else None
