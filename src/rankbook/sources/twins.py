"""Which of two definitions of one name is taken, between which an `if` or a `try` decides."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from rankbook.model import Expression
from rankbook.sources.drafts import ClassDraft, FunctionDraft


def choose(drafts: Sequence[FunctionDraft] | Sequence[ClassDraft], assigned: AbstractSet[str]) -> None:
    """Of two definitions of one name, between which an `if` or a `try` decides, take the one that runs tests.

    Args:
        drafts: all of a module or of a class.
        assigned: names that assignments set too, of which only a run can tell.
    """
    if all(draft.branch is None for draft in drafts):
        return
    named: dict[str, list[FunctionDraft | ClassDraft]] = {}
    for draft in drafts:
        named.setdefault(draft.qualname, []).append(draft)
    for qualname, several in named.items():
        ways = [draft.branch for draft in several if draft.branch is not None]
        if len(several) == len(ways) == 2 and ways[0].is_other_of(ways[1]) and qualname not in assigned:
            _choose_of_two(*several)


def _choose_of_two(*several: FunctionDraft | ClassDraft) -> None:
    """Take one of the two definitions between which a statement decides, or both, where that makes no difference."""
    for draft in several:
        if isinstance(draft, FunctionDraft):
            draft.is_twin = True
            if draft.branch is not None and not draft.branch.is_told:
                draft.guard = None
    idle = [draft for draft in several if draft.only_skips()]
    if not idle and isinstance(several[0], ClassDraft):
        idle = [draft for draft in several if isinstance(draft, ClassDraft) and not draft.tests()]
    if len(idle) != 1:
        if not idle or isinstance(several[0], ClassDraft):
            _let_either(*several)
        return
    spare = idle[0]
    (chosen,) = (draft for draft in several if draft is not spare)
    spare.is_spare = True
    if isinstance(chosen, FunctionDraft):
        if spare.guard is not None and spare.branch is not None and spare.branch.is_told:
            chosen.skips.append(Expression(spare.guard, "", chosen.node.lineno))
    elif chosen.branch is not None and chosen.branch.there is not None:
        chosen.guard = chosen.branch.there


def _let_either(one: FunctionDraft | ClassDraft, other: FunctionDraft | ClassDraft) -> None:
    """Have two definitions under no condition where both ask for the same, and else take that of a `try` if it asks for nothing."""
    if isinstance(one, FunctionDraft) and isinstance(other, FunctionDraft):
        if one.asks_like(other):
            one.is_either = other.is_either = True
            return
    elif isinstance(one, ClassDraft) and isinstance(other, ClassDraft) and one.asks_like(other):
        for draft in (one, other):
            draft.is_either = True
            for method in draft.methods:
                method.is_either = True
        return
    tried, instead = (one, other) if one.branch is not None and one.branch.is_first else (other, one)
    if tried.branch is not None and tried.branch.there is not None and tried.asks_nothing():
        instead.is_spare = True
