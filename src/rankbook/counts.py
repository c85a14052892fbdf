"""How many rows each name of an index has, in its order, from one run to the next: an edit touches few of a hundred thousand."""

from __future__ import annotations

import marshal
from array import array
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property

from rankbook.pages.shards import Tokens
from rankbook.store import Store, StoreError

KEY = "//counts"
"""Where they are, in the table of an index."""
_FEW = 500
"""Names up to which each is looked for; of more than that a table is made."""


class Counts:
    """Numbers of rows by name.

    Args:
        names: in their order.
        numbers: of their rows.
        tokens: how a name is looked up.
    """

    def __init__(self, names: list[str], numbers: list[int], tokens: Callable[[str], Tokens]) -> None:
        self.names = names
        """In their order, as they were when they were last settled."""
        self.numbers = numbers
        """Of their rows, at the same places."""
        self._tokens = tokens
        self._changed: dict[str, int] = {}
        """Numbers of rows that are not yet settled."""

    def __bool__(self) -> bool:
        """Tell whether a name has rows."""
        return any(self._changed.values()) or any(name not in self._changed for name in self.names)

    @property
    def there(self) -> frozenset[str]:
        """All names with rows."""
        come = {name for name, number in self._changed.items() if number}
        return frozenset(set(self.names).difference(self._changed) | come)

    def add(self, name: str, rows: int) -> None:
        """Count rows of a name, or take some away."""
        known = self._changed.get(name)
        self._changed[name] = (self._settled(name) if known is None else known) + rows

    def settle(self) -> list[tuple[int, int]]:
        """Put the names in order.

        Returns:
            Where something has changed, in ascending order: the place, and 1 for a name that is new there, -1 for one that was before it,
            0 for one with another number of rows. Nothing where there was no name before.
        """
        changed, self._changed = self._changed, {}
        self.__dict__.pop("_table", None)
        if not self.names:
            self.names = sorted((name for name, number in changed.items() if number), key=self._place)
            self.numbers = [changed[name] for name in self.names]
            return []
        moves: list[tuple[int, int]] = []
        old, numbers = self.names, self.numbers
        names: list[str] = []
        counts: list[int] = []
        start = 0
        for name in sorted(changed, key=self._place):
            place, number = bisect_left(old, self._place(name), start, key=self._place), changed[name]
            is_known = place < len(old) and old[place] == name
            if number == (numbers[place] if is_known else 0):
                continue
            names += old[start:place]
            counts += numbers[start:place]
            start = place + is_known
            moves.append((len(names), bool(number) - is_known))
            if number:
                names.append(name)
                counts.append(number)
        self.names, self.numbers = names + old[start:], counts + numbers[start:]
        return moves

    def keep(self, store: Store, table: str) -> None:
        """Leave the settled names for the next run."""
        joined = "\n".join(self.names)
        names = joined if joined.count("\n") == len(self.names) - 1 else self.names
        store.put(table, KEY, marshal.dumps((names, array("Q", self.numbers).tobytes())))

    def _settled(self, name: str) -> int:
        if not self.names:
            return 0
        if len(self._changed) > _FEW:
            return self._table.get(name, 0)
        place = bisect_left(self.names, self._place(name), key=self._place)
        return self.numbers[place] if place < len(self.names) and self.names[place] == name else 0

    @cached_property
    def _table(self) -> dict[str, int]:
        return dict(zip(self.names, self.numbers, strict=True))

    def _place(self, name: str) -> tuple[Tokens, str]:
        return self._tokens(name), name


def kept(store: Store, table: str, tokens: Callable[[str], Tokens]) -> Counts:
    """Give the numbers of an index as the last run has left them.

    Args:
        store: where they are kept.
        table: of the index.
        tokens: how a name is looked up.

    Raises:
        StoreError: they cannot be read.
    """
    names, numbers = _read(store, table)
    return Counts(names, numbers, tokens)


def counted(store: Store, table: str) -> dict[str, int]:
    """Give the same by name, in the order of the index.

    Raises:
        StoreError: they cannot be read.
    """
    return dict(zip(*_read(store, table), strict=True))


def _read(store: Store, table: str) -> tuple[list[str], list[int]]:
    data = store.data(table, KEY)
    if data is None:
        return [], []
    try:
        names, packed = marshal.loads(data)  # noqa: S302 - it lies in the user's own cache
        numbers = array("Q", packed).tolist()
        names = names.split("\n") if isinstance(names, str) else names
    except (EOFError, ValueError, TypeError) as error:
        raise StoreError(str(error)) from error
    if len(names) != len(numbers):
        raise StoreError(f"{len(names)} names have {len(numbers)} numbers")
    return names, numbers
