"""Which APIs a file uses, and which of its tests reach them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from rankbook.analyse.canonical import meaning, public_name, split
from rankbook.analyse.draft import Collected, Draft
from rankbook.analyse.reach import Body, Mention, Node, bodies, reached
from rankbook.model import PACKAGES, Use


class _Gathered(Struct):
    """What is known of one name so far."""

    lines: set[int] = field(default_factory=set)
    places: set[tuple[str, int]] = field(default_factory=set)
    tests: set[int] = field(default_factory=set)
    """By their place in the order of the file's tests."""
    is_called: bool = False


def uses(draft: Draft, path: str, collected: Iterable[Collected]) -> Iterator[Use]:
    """Give each imported name that a file or one of its tests uses, with the tests that reach it.

    Args:
        draft: the tree.
        path: the file.
        collected: its tests.
    """
    found: dict[str, _Gathered] = {}
    own = {(path, owner): tuple(_named(draft, path, body)) for owner, body in bodies(draft, path).items()}
    for mentions in own.values():
        for mention in mentions:
            _gathered(found, mention).lines.add(mention.line)
    ordered = list(collected)
    for node, tests in _by_node(draft, ordered).items():
        for mention in own[node] if node in own else _mentions(draft, node):
            gathered = _gathered(found, mention)
            gathered.tests.update(tests)
            if node[0] != path:
                gathered.places.add((node[0], mention.line))
    ids = [each.test.id for each in ordered]
    for name, gathered in sorted(found.items()):
        tests_of = tuple(ids[index] for index in sorted(gathered.tests))
        places = tuple(sorted(gathered.places))
        yield Use(name, tuple(sorted(gathered.lines)), tests_of, gathered.is_called, places, _home(draft, path, name))


def _home(draft: Draft, path: str, name: str) -> tuple[str, int] | None:
    """Tell where a file of the tree defines a name: of a method its class, of a module its first line."""
    spot = split(draft, path, name)
    if spot is None or spot.path.startswith(PACKAGES):
        return None
    root = spot.name.partition(".")[0]
    place = draft.names.find(spot.path, root) if root else None
    if place is None:
        return None if root else (spot.path, 1)
    return None if place.path.startswith(PACKAGES) else (place.path, place.definition.line)


def _gathered(found: dict[str, _Gathered], mention: Mention) -> _Gathered:
    known = found.get(mention.name)
    if known is None:
        known = found[mention.name] = _Gathered()
    known.is_called |= mention.is_called
    return known


def _by_node(draft: Draft, collected: Iterable[Collected]) -> dict[Node, list[int]]:
    """Give the tests that run each function, by their place in the order of the file's tests."""
    found: dict[Node, list[int]] = {}
    for index, each in enumerate(collected):
        for node in reached(draft, each):
            found.setdefault(node, []).append(index)
    return found


def _mentions(draft: Draft, node: Node) -> tuple[Mention, ...]:
    """Give the imported names that a function of another file uses, by their public names."""
    path, owner = node
    return draft.remember(("mentions", node), lambda: tuple(_named(draft, path, bodies(draft, path).get(owner, Body()))))


def _named(draft: Draft, path: str, body: Body) -> Iterator[Mention]:
    for each in body.mentions:
        name = public_name(draft, path, each.name)
        if not name.startswith("pytest.mark."):
            yield Mention(name, each.line, each.is_called)
    for local, line in body.local.items():
        meant = meaning(draft, path, local)
        if meant is not None:
            yield Mention(meant, line, is_called=True)
