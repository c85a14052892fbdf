"""Output that is kept in little memory: its first and its last bytes."""

from __future__ import annotations

KEPT = 64 * 1024
"""Bytes kept at each end."""


class Capped:
    """Bytes as they come, of which the middle is left out.

    Args:
        kept: bytes kept at each end.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take more bytes."""
        room = self.kept - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 4 * self.kept:  # now and then, since each cut moves bytes
            self._cut()

    def _cut(self) -> None:
        excess = max(0, len(self._tail) - self.kept)
        del self._tail[:excess]
        self._left_out += excess

    def text(self) -> str:
        """Give what is kept, as text that says how much is missing."""
        self._cut()
        gap = f"\n[... {self._left_out:,} bytes left out ...]\n" if self._left_out else ""
        if not gap:
            return (self._head + self._tail).decode(errors="replace")
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")
