"""Groups in C do what groups in Python do, whatever happens to them."""

from __future__ import annotations

import tracemalloc
from array import array
from collections import Counter
from operator import itemgetter
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tollkeeper.engine.velocity import run, tree
from tollkeeper.engine.velocity.aggregates import recounting
from tollkeeper.engine.velocity.groups import Groups
from tollkeeper.engine.velocity.series import FASTEST, PLAIN, Memory
from tollkeeper.grammar.types import Boolean, Duration, Number, String, Type
from tollkeeper.tests.engine.velocity.worlds import HOUR, MEMORIES, MINUTE, START, same, window
from tollkeeper.tests.examples import examples

REACH = 3 * HOUR
LONGEST = HOUR
FEW = 6
LARGE = 40_000

SERIES: dict[str, tuple[tuple[str, ...], Type | None, list[Any]]] = {
    "payments": (("count",), None, [True]),
    "amounts": (
        ("sum", "avg", "min", "max", "distinct"),
        Number(2),
        [0, 1, -250, 2**62, 10**38 - 1],
    ),
    "ratios": (("sum", "avg", "min", "max", "distinct"), Number(None), [0.1, -0.0, 0.0, 1e308]),
    "spent": (("sum", "avg", "max"), Duration(), [0, 5, 10**18, -(10**18)]),
    "cards": (("distinct", "count"), String(), list("uvwxyz")),
    "truths": (("any", "all"), Boolean(), [True, False, None]),
}
GROUPS = ["a", "b", ("a", 1), 2**70, 1.5, *range(20)]


def made(memory: Memory, type_: Type | None, functions: tuple[str, ...]) -> tuple[Any, Groups]:
    clock = memory.clock()
    lengths = (HOUR,) if "distinct" in functions else ()
    return clock, memory.groups(clock, REACH, type_ is not None, lengths, FEW)


def values(held: Groups, name: str, group: Any, at: int) -> list[Any]:
    functions, type_, _ = SERIES[name]
    scale = type_.scale if isinstance(type_, Number) and type_.scale is not None else -1
    return [
        held.reader(
            window(name, function, over),
            function,
            over,
            recounting(function, type_),
            scale,  # type: ignore[arg-type]
        )(group, at)
        for function in functions
        for over in (1, MINUTE, LONGEST)
    ]


@pytest.mark.skipif(FASTEST is PLAIN, reason="the extension was not built here")
@pytest.mark.parametrize("name", SERIES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_both_give_the_same_whatever_happens(name: str, data: Any) -> None:
    functions, type_, some = SERIES[name]
    steps = st.tuples(
        st.sampled_from("ppppppttnsdm"),
        st.sampled_from(GROUPS),
        st.sampled_from([0, 0, 1, 2, MINUTE, HOUR, 2 * HOUR]),
        st.sampled_from(some),
    )
    both = [made(memory, type_, functions) for memory in (PLAIN, FASTEST)]
    now = START
    for what, group, offset, value in data.draw(st.lists(steps, max_size=80)):
        if what == "n":
            now += offset
        found = []
        for index, (clock, held) in enumerate(both):
            if what == "n":
                clock.newest = now
            elif what == "p":
                held.put(now - offset, group, value)
            elif what == "t":
                held.take(now - offset, group, value)
            elif what == "s":
                held.pass_buckets()
                while held.sweep():
                    pass
            elif what == "m":
                while not held.prepare():
                    pass
            else:
                both[index] = clock, copied(held, (PLAIN, FASTEST)[index], clock, name)
                held = both[index][1]
            at = max(now - offset, now - (REACH - LONGEST))
            found.append(values(held, name, group, at))
        (_, plain), (_, compiled) = both
        if what == "s":
            assert plain.keys == compiled.keys
        assert all(map(same, *found)), (what, found)


def copied(held: Groups, memory: Memory, clock: Any, name: str) -> Groups:
    """What is held, through its columns."""
    functions, type_, _ = SERIES[name]
    lengths = (HOUR,) if "distinct" in functions else ()
    copy = memory.groups(clock, REACH, type_ is not None, lengths, FEW)
    start = 0
    while start >= 0:
        start, columns = held.dump(start, 7)
        copy.load(columns)
    return copy


@pytest.mark.parametrize("memory", MEMORIES)
def test_what_is_dumped_is_all_that_is_held(memory: str) -> None:
    clock, held = made(MEMORIES[memory], String(), ("distinct",))
    clock.newest = START
    for number in range(100):
        for time in range(number % 10):
            held.put(START + time, f"card-{number}", str(time))
    copy = copied(held, MEMORIES[memory], clock, "cards")
    assert (copy.keys, copy.entries) == (90, held.entries)
    assert all(
        values(copy, "cards", f"card-{number}", START + 9)
        == values(held, "cards", f"card-{number}", START + 9)
        for number in range(100)
    )


at_few_times = st.tuples(
    st.sampled_from("pppt"),
    st.sampled_from([START, START + 1, START + 2]),
    # In Python -1 and -2 have one hash.
    st.integers(-3, 9) | st.just(10**30),
)


@pytest.mark.parametrize("memory", MEMORIES)
@settings(max_examples=examples(60), deadline=None)
@given(steps=st.lists(at_few_times, max_size=120))
def test_of_many_elements_of_one_time_the_one_meant_is_removed(
    memory: str, steps: list[tuple[str, int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tree, "LEAF", 3)
        patched.setattr(tree, "FAN", 3)
        clock, held = made(MEMORIES[memory], Number(2), ("distinct", "sum"))
        clock.newest = START + 2
        kept = Counter[tuple[int, int]]()
        for number, (what, time, value) in enumerate(steps):
            if what == "p":
                held.put(time, "g", value)
                kept[time, value] += 1
            else:
                held.take(time, "g", value)
                kept[time, value] -= kept[time, value] > 0
            if number % 5 == 0:
                values(held, "amounts", "g", START + 2)
            assert held.entries == kept.total()
        _, (_, _, times, found) = held.dump(0, len(steps) + 1)
        dumped = list(zip(array("q", bytes(times)), found, strict=True))
        assert [time for time, _ in dumped] == sorted(time for time, _ in dumped)
        assert Counter(dumped) == +kept


class Card(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Card.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("is_read", [False, True])
def test_an_element_among_very_many_of_one_time_is_found_by_few_comparisons(
    memory: str, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "FAR_BACK", 1000)
    clock, held = made(MEMORIES[memory], String(), ())
    clock.newest = START
    for number in range(LARGE):
        held.put(START, "busy", Card(number))
    if is_read:
        values(held, "cards", "busy", START)
    held.take(START, "busy", Card(0))
    Card.compared = 0
    for number in (1, LARGE // 2, LARGE - 1, LARGE):
        held.take(START, "busy", Card(number))
    assert held.entries == LARGE - 4
    assert Card.compared < 100


@pytest.mark.parametrize("memory", MEMORIES)
def test_columns_that_do_not_fit_together_are_refused(memory: str) -> None:
    _, held = made(MEMORIES[memory], String(), ("distinct",))
    with pytest.raises(ValueError):
        held.load((["a"], [2], bytes(8), ["x"]))
    with pytest.raises(ValueError):
        held.load((["a", "b"], [1], bytes(8), ["x"]))
    with pytest.raises(ValueError):
        held.load((["a"], [1], bytes(8), []))
    assert held.entries == 0


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", SERIES)
def test_a_busy_group_gives_what_a_recount_gives(name: str, memory: str) -> None:
    functions, type_, some = SERIES[name]
    chance = Random(7)
    clock, held = made(MEMORIES[memory], type_, functions)
    kept: list[tuple[int, Any]] = []
    now = START
    for number in range(1500):
        now += chance.choice([0, 1, MINUTE // 6])
        clock.newest = now
        late = chance.choice([0, 0, 1, MINUTE, REACH - LONGEST])
        time, value = now - chance.randrange(late + 1), chance.choice(some)
        held.put(time, "busy", value)
        kept.append((time, value))
        if chance.random() < 0.2:
            gone = kept.pop(chance.randrange(len(kept)))
            held.take(gone[0], "busy", gone[1])
        at = chance.choice([time, now])
        if number % 5 == 0:
            expected = [
                recounting(function, type_)(
                    [v for t, v in sorted(kept, key=itemgetter(0)) if at - over < t <= at]
                )
                for function in functions
                for over in (1, MINUTE, LONGEST)
            ]
            found = values(held, name, "busy", at)
            assert all(map(same, found, expected)), (number, found, expected)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", SERIES)
def test_a_large_group_that_was_never_read_counts_late_elements(name: str, memory: str) -> None:
    functions, type_, some = SERIES[name]
    chance = Random(11)
    clock, held = made(MEMORIES[memory], type_, functions)
    clock.newest = START + LARGE
    kept = [(START + number, some[number % len(some)]) for number in range(LARGE)]
    for time, value in kept:
        held.put(time, "busy", value)
    for _ in range(50):
        time, value = kept.pop(chance.randrange(100))
        held.take(time, "busy", value)
        time, value = START + chance.randrange(100), chance.choice(some)
        held.put(time, "busy", value)
        kept.append((time, value))
    assert held.entries == LARGE
    for at in (START + 50, START + LARGE):
        inside = [v for t, v in sorted(kept, key=itemgetter(0)) if at - 1 < t <= at]
        all_of_them = [v for t, v in sorted(kept, key=itemgetter(0)) if t <= at]
        expected = [
            recounting(function, type_)(inside if over == 1 else all_of_them)
            for function in functions
            for over in (1, MINUTE, LONGEST)
        ]
        assert all(map(same, values(held, name, "busy", at), expected))


@pytest.mark.parametrize("change", ["put", "take"])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("valued", [False, True])
def test_a_late_change_of_a_large_group_that_was_never_read_moves_few_elements(
    valued: bool, memory: str, change: str
) -> None:
    """Once there was one, what comes after it copies no whole group either."""
    clock = MEMORIES[memory].clock()
    clock.newest = START + LARGE
    held = MEMORIES[memory].groups(clock, REACH, valued, (), run.FEW)
    for number in range(LARGE):
        held.put(START + number, "busy", True)
    getattr(held, change)(START, "busy", True)
    peaks = []
    tracemalloc.start()
    try:
        for number in range(LARGE):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            held.put(START + LARGE + number, "busy", True)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert max(peaks) < LARGE


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_prepared_group_is_indexed_also_where_elements_came_late(memory: str) -> None:
    """The first read would index it, and all payments would wait for that."""
    clock, held = made(MEMORIES[memory], String(), ("distinct",))
    clock.newest = START + LARGE
    for number in (*range(LARGE), 0):
        held.put(START + number, "busy", f"card-{number}")
    while not held.prepare():
        pass
    recount = recounting("distinct", String())
    read = held.reader(window("cards", "distinct", HOUR), "distinct", HOUR, recount, -1)
    tracemalloc.start()
    try:
        assert read("busy", START + LARGE) == LARGE
        assert tracemalloc.get_traced_memory()[1] < LARGE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("count", [511, 512, 600])
def test_a_group_of_just_so_many_values_is_counted(memory: str, count: int) -> None:
    clock = MEMORIES[memory].clock()
    clock.newest = START
    held = MEMORIES[memory].groups(clock, REACH, True, (HOUR,), count)
    for number in range(count):
        held.put(START, "busy", f"card-{number}")
    recount = recounting("distinct", String())
    read = held.reader(window("cards", "distinct", HOUR), "distinct", HOUR, recount, -1)
    assert read("busy", START) == count


class Chosen:
    """A key whose hash somebody has chosen, as of numbers anybody can."""

    compared = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        Chosen.compared += 1
        return self is other


@pytest.mark.parametrize("memory", MEMORIES)
def test_keys_that_one_multiplier_gives_one_hash_are_hardly_ever_compared(memory: str) -> None:
    """Whoever knows how keys are mixed makes each new one be compared with all that are there."""
    _, held = made(MEMORIES[memory], None, ("count",))
    back = pow(0x9E3779B97F4A7C15, -1, 2**64)
    hashes = [((7 << 32) + low) * back % 2**64 for low in range(1000)]
    Chosen.compared = 0
    for number in hashes:
        held.put(START, Chosen(number - (number >> 63 << 64)), True)
    assert held.keys == 1000
    assert Chosen.compared < 1000


@pytest.mark.skipif(FASTEST is PLAIN, reason="the extension was not built here")
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_what_waits_is_always_put_in_its_order(data: Any) -> None:
    elements = st.tuples(
        st.sampled_from(sorted(SERIES)),
        st.sampled_from(GROUPS),
        st.sampled_from([0, 1, MINUTE, HOUR]),
        st.integers(0, 5),
    )
    queue, by_name = FASTEST.queue(), {}
    for name, (functions, type_, _) in SERIES.items():
        direct, queued = (made(FASTEST, type_, functions) for _ in range(2))
        by_name[name] = direct, queued, queue.put_into(queued[1])
    for name, group, offset, number in data.draw(st.lists(elements, max_size=300)):
        some = SERIES[name][2]
        (clock, direct), (other, _), put = by_name[name]
        clock.newest = other.newest = max(clock.newest, START + offset)
        direct.put(START + offset, group, some[number % len(some)])
        put(START + offset, group, some[number % len(some)])
    queue.flush()
    for name, ((_, direct), (_, queued), _) in by_name.items():
        assert (direct.keys, direct.entries) == (queued.keys, queued.entries)
        for group in GROUPS:
            found = [values(held, name, group, START + HOUR) for held in (direct, queued)]
            assert same(*found), (name, group)


@pytest.mark.skipif(FASTEST is PLAIN, reason="the extension was not built here")
def test_what_can_not_be_put_is_refused_and_what_waited_is_not_lost() -> None:
    queue = FASTEST.queue()
    _, held = made(FASTEST, String(), ("count",))
    put: Any = queue.put_into(held)
    put(START, "a", "u")
    for refused in ((START, ["a"], "u"), (2**70, "a", "u"), (START, "a"), ("now", "a", "u")):
        with pytest.raises((TypeError, OverflowError)):
            put(*refused)
    queue.flush()
    assert held.entries == 1
    with pytest.raises(TypeError):
        queue.put_into(made(PLAIN, None, ("count",))[1])
    put(START, "b", "u")
