from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.registry.persistent_map import PersistentMap

keys = st.integers(0, 11)


@given(
    st.dictionaries(keys, st.integers(), max_size=12),
    st.lists(st.tuples(keys, st.none() | st.integers()), max_size=20),
)
def test_a_map_is_after_any_changes_what_a_dict_is_and_was_before_them(begin, history):
    expected, held = dict(begin), PersistentMap(begin)
    before = []
    for key, value in history:
        before.append((held, dict(expected)))
        if value is None:
            expected.pop(key, None)
            held = held.without(key)
        else:
            expected[key] = value
            held = held.with_item(key, value)
    for each, of in [*before, (held, expected), (pickle.loads(pickle.dumps(held)), expected)]:
        assert (each, len(each), repr(each)) == (of, len(of), repr(of))
        assert list(each) == list(each.keys()) == list(of)
        assert list(each.items()) == list(of.items())
        assert list(each.values()) == list(of.values())
        assert [each.get(key) for key in range(12)] == [of.get(key) for key in range(12)]


def test_most_of_a_large_map_is_shared_with_the_one_after_a_change():
    held = PersistentMap({number: str(number) for number in range(10_000)})
    copies = 0
    for number in range(1_000):
        after = held.with_item(-number, "") if number % 2 else held.without(number)
        copies += after._base is not held._base
        held = after
    assert copies < 12
