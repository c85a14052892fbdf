"""What a large table and the groups in it hold is there again when it was kept, and what was not changed is not written."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from rankbook.groups import Groups
from rankbook.sheaf import Sheaf

STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b", "é"]), st.integers(0, 12).map(str)), max_size=60)


def kept(sheaf, drawers):
    """Keep a table as a run does; give how it is made, and the drawers that were written."""
    changed = {number: pickle.dumps(values) for number, values in sheaf.changed()}
    drawers |= changed
    return pickle.loads(pickle.dumps(sheaf)), changed


def opened(sheaf, drawers):
    """Open a table as the next run does."""
    sheaf.open(lambda number: pickle.loads(drawers[number]) if number in drawers else None)
    return sheaf


@given(st.lists(STEPS, max_size=4))
def test_groups_are_sets_by_key(runs):
    """After any steps in any runs a group holds each name once, and a key without names is not there."""
    groups, drawers, expected = Groups(), {}, {}
    for steps in runs:
        for is_added, key, name in steps:
            (groups.add if is_added else groups.discard)(key, name)
            names = expected.setdefault(key, set())
            (names.add if is_added else names.discard)(name)
        for key in ("a", "b", "é", "none"):
            assert sorted(groups.get(key)) == sorted(expected.get(key, ()))
            assert bool(groups.held.get(key)) == bool(expected.get(key))
        kept(groups.held, drawers)
        groups = pickle.loads(pickle.dumps(groups, pickle.HIGHEST_PROTOCOL))
        opened(groups.held, drawers)


def test_what_is_only_read_is_not_written():
    """A run that reads some names and changes one writes the drawer of that one."""
    sheaf, drawers = Sheaf(), {}
    for number in range(2000):
        sheaf.put(f"name{number}", {number})
    sheaf, _ = kept(sheaf, drawers)
    opened(sheaf, drawers)
    assert sheaf.get("name7") == {7}
    assert sheaf.get("none") is None
    sheaf.put("name8", {8, 9})
    sheaf.put("name9", None)
    sheaf, changed = kept(sheaf, drawers)
    assert sorted(name in values for name in ("name8", "name9") for values in map(pickle.loads, changed.values())).count(True) == 1
    assert opened(sheaf, drawers).get("name8") == {8, 9}
    assert sheaf.get("name9") is None
