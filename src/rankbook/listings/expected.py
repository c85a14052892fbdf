"""Output fences: a fence with the class `.output` directly below a listing holds what the listing prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rankbook.listing import ExpectedOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rankbook.listing import Listing

CLASS = "output"
ORPHAN = (
    "this output belongs to no listing: it must stand directly below one, with the same indentation and nothing but blank lines between"
)


def attached(listings: Sequence[Listing], follows: Callable[[int], bool]) -> list[Listing]:
    """Give each listing the output fences below it.

    Args:
        listings: what a page shows, in page order.
        follows: tells of a place in them whether that one stands directly below the one before it.

    Returns:
        The same listings: output fences know their listing, listings their outputs, and what is wrong is their problem.
    """
    found: list[Listing] = []
    owner: int | None = None
    for place, listing in enumerate(listings):
        if CLASS not in listing.options or listing.custom:
            owner = place
            found.append(listing)
        elif owner is None or not follows(place) or listing.problem is not None:
            owner = None
            found.append(replace(listing, problem=listing.problem or ORPHAN))
        else:
            found.append(replace(listing, output_of=found[owner].line))
            found[owner] = _with(found[owner], listing)
    return found


def _with(owner: Listing, output: Listing) -> Listing:
    expected = ExpectedOutput(output.options.get("rank", ""), output.text, output.line, output.first_line, output.lines)
    problem = owner.problem or _problem(owner, expected)
    return replace(owner, outputs=(*owner.outputs, expected), problem=problem)


def _problem(owner: Listing, output: ExpectedOutput) -> str | None:
    """Say why a listing cannot have an output fence."""
    where = f"the output at line {output.line}"
    counts = [int(count) for count in owner.options.get("ranks", "").split(",") if count.strip().isdigit()]
    if len(counts) > 1:
        return f"{where} cannot be that of several numbers of ranks; give the listing one number"
    if output.rank and not counts:
        return f"{where} names rank {output.rank}, but the listing runs on no ranks; take its option 'rank' away"
    if output.rank and int(output.rank) >= counts[0]:
        return f"{where} names rank {output.rank}, but the ranks of the listing are 0 to {counts[0] - 1}"
    if any(_rank(output) == _rank(other) for other in owner.outputs):
        return f"{where} is the second of {'rank ' + output.rank if output.rank else 'the whole listing'}; one is enough"
    return None


def _rank(output: ExpectedOutput) -> int | None:
    return int(output.rank) if output.rank else None
