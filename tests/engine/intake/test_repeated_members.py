"""No object of a body names a member twice, in whatever way it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tollkeeper.engine.intake.repeated_members import may_repeat_members, repeated_members
from tollkeeper.engine.intake.violations import MAX_LISTED

names = st.text('ab"\\{}[]:, \té', max_size=3)


class Members(list[tuple[str, Any]]):
    """An object, whose members may have the same name."""


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(names, inner), max_size=4).map(Members)
    ),
    max_leaves=12,
)


def written(value: Any, space: str, ascii_: bool) -> str:
    if isinstance(value, Members):
        pairs = (
            f"{json.dumps(name, ensure_ascii=ascii_)}{space}:{space}{written(each, space, ascii_)}"
            for name, each in value
        )
        return f"{{{space}{f',{space}'.join(pairs)}{space}}}"
    if isinstance(value, list):
        return f"[{','.join(written(each, space, ascii_) for each in value)}]"
    return json.dumps(value, ensure_ascii=ascii_)


def repeats(value: Any) -> bool:
    if isinstance(value, Members):
        named = [name for name, _ in value]
        return len({*named}) < len(named) or any(repeats(each) for _, each in value)
    return isinstance(value, list) and any(map(repeats, value))


@given(values, st.sampled_from(["", " ", "\n\t "]), st.booleans())
@example(Members([("a", 1), ("b", Members([("a", 2), ("a", 3)]))]), "", True)
def test_a_member_is_found_twice_where_it_is_and_nowhere_else(
    value: Any, space: str, ascii_: bool
) -> None:
    body = written(value, space, ascii_).encode()
    assert bool(repeated_members(body)) == repeats(value)
    assert may_repeat_members(body) or not repeats(value)


@given(st.binary(max_size=60) | st.text('{}[]":\\,a ', max_size=60).map(str.encode))
def test_a_body_that_is_no_json_does_no_harm(body: bytes) -> None:
    assert may_repeat_members(body) in (True, False)
    assert isinstance(repeated_members(body), tuple)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "\\u0061": 2}',
        b"{" + b",".join(b'"m%d": 1' % number for number in range(70)) + b', "m0": 1}',
        b"[" * 70 + b'{"a": 1, "a": 1}' + b"]" * 70,
    ],
)
def test_what_is_rare_is_looked_through_all_the_same(body: bytes) -> None:
    assert may_repeat_members(body)
    assert len(repeated_members(body)) == 1


def test_many_members_take_no_longer_than_reading_them() -> None:
    many = json.dumps({f"m{number}": number for number in range(20_000)}).encode()
    assert may_repeat_members(many)
    assert repeated_members(many) == ()


@pytest.mark.parametrize(
    ("around", "place"), [("n" * 9000, "….a"), ('n":{"' * 800 + "n", "….n.n.a")]
)
def test_what_is_told_of_a_body_is_bounded_whatever_its_names_are(around: str, place: str) -> None:
    inner = "{" + ",".join(['"a": 1'] * 1500) + "}"
    body = f'{{"{around}": {inner}{"}" * (around.count(":") + 1)}'.encode()
    found = repeated_members(body)
    assert len(found) == MAX_LISTED
    assert all(each.startswith("…") and len(each) <= 1025 for each in found)
    assert all(each.endswith(place.removeprefix("…")) for each in found)
