"""Which shards a node gives away, so that nodes own as many each."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.api.http.serve_node import in_turn, to_give
from tollkeeper.api.http.serve_shard import ServedShard


@dataclass
class Requests:
    decides: bool


@dataclass
class Address:
    address: str


@dataclass
class Known:
    """What a node knows of a shard."""

    serving: Address
    owner_address: str
    requests: Requests
    successors: dict[str, str] = field(default_factory=dict)


def known_at(address: str, owners: list[str], whole: list[set[str]]) -> list[ServedShard]:
    shards = [
        Known(
            Address(address),
            owner,
            Requests(owner == address),
            {each: f"{each}/{number}" for each in sorted(nodes)},
        )
        for number, (owner, nodes) in enumerate(zip(owners, whole, strict=True))
    ]
    return cast("list[ServedShard]", shards)


def test_a_node_that_has_joined_is_given_what_is_whole_there() -> None:
    everybody = {"a", "b"}
    shards = known_at("a", ["a", "a", "a"], [{"a"}, everybody, {"a"}])
    assert to_give(shards) == (shards[1], "b/1")
    assert to_give(known_at("b", ["a", "a", "a"], [everybody] * 3)) is None
    assert to_give(known_at("a", ["a", "b", "a"], [everybody] * 3)) is None


def test_nothing_is_given_while_an_owner_is_not_known() -> None:
    whole = [{"a", "b"}] * 3
    assert to_give(known_at("a", ["a", "a", ""], whole)) is None
    assert to_give(known_at("a", ["a", "a", "a"], whole)) is not None


@given(
    st.integers(1, 5).flatmap(
        lambda count: st.lists(st.integers(0, count - 1), min_size=1, max_size=16).map(
            lambda owners: (count, owners)
        )
    )
)
def test_giving_ends_when_all_own_as_many(given_: tuple[int, list[int]]) -> None:
    count, numbers = given_
    names = [f"node-{number}" for number in range(count)]
    owners = [names[number] for number in numbers]
    asked = cycle(names)
    quiet = 0
    while quiet < count:
        found = to_give(known_at(next(asked), owners, [set(names)] * len(owners)))
        quiet += 1
        if found is not None:
            taker, number = found[1].split("/")
            owners[int(number)] = taker
            quiet = 0
    owned = [owners.count(name) for name in names]
    assert max(owned) - min(owned) <= 1


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9))
def test_a_node_that_joins_begins_with_the_shards_that_others_give_it(owners: list[str]) -> None:
    turns, given_to_it = in_turn(owners), list[int]()
    # As soon as the node has one more shard, somebody may give it away.
    for count in range(len(owners) + 1):
        whole = [{"z"} if number in turns[:count] else set[str]() for number in range(len(owners))]
        for giver in set(owners):
            if (found := to_give(shards := known_at(giver, owners, whole))) is not None:
                number = shards.index(found[0])
                given_to_it.append(number)
                owners = [*owners[:number], "z", *owners[number + 1 :]]
    assert given_to_it == turns[: len(given_to_it)]
    assert sorted(turns) == list(range(len(owners)))


def test_shards_that_nobody_owns_come_first() -> None:
    assert in_turn(["a", "", "b", "a", ""]) == [1, 4, 0, 2, 3]
