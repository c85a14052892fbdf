"""Groups of names are sets by key, whatever is put in and taken out in whatever order."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from rankbook.groups import Groups

STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b"]), st.integers(0, 12).map(str)), max_size=80)


@given(STEPS)
def test_groups_are_sets_by_key(steps):
    """A group holds each name once, a key without names is not there, and all of it can be kept."""
    groups, expected = Groups(), {}
    for is_added, key, name in steps:
        if is_added:
            groups.add(key, name)
            expected.setdefault(key, set()).add(name)
        else:
            groups.discard(key, name)
            expected.get(key, set()).discard(name)
    known = pickle.loads(pickle.dumps(groups, pickle.HIGHEST_PROTOCOL))
    assert {key for key, names in expected.items() if names} == set(known)
    for key in ("a", "b", "c"):
        assert sorted(known.get(key)) == sorted(expected.get(key, ()))
