"""What is read in a payment's own groups is what is read with its keys."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from msgspec import structs

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.load import shipped_scorecard
from tollkeeper.engine.velocity.contract import Group, NotWholeError, Record, SeriesPlan, State
from tollkeeper.engine.velocity.first_seen import MemorySeenTimes
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.programs.compile.payments import payment
from tollkeeper.tests.engine.velocity.worlds import DAY, HOUR, MINUTE, START, filled

pytestmark = pytest.mark.anyio

READING = shipped_scorecard().reading
OWN = (READING.plan.windows,)


async def whole(plans: tuple[SeriesPlan, ...], **options: Any) -> Windows:
    windows = Windows(**options)
    await filled(windows, 1, plans)
    return windows


def record(random: Random, arrived: int) -> Record:
    late = random.choice((0, 0, 0, MINUTE, DAY))
    facts: Facts = structs.replace(payment(random), arrived=arrived, timestamp=arrived - late)
    return Record(1, "p", facts.timestamp, arrived, State(facts))


async def test_it_is_the_same_whatever_happens() -> None:
    together = await whole(READING.plan.series)
    apart = await whole(tuple(replace(plan, counting=None) for plan in READING.plan.series))
    random, arrived = Random(6), START
    for _ in range(400):
        arrived += random.choice((0, MINUTE, HOUR, 20 * HOUR))
        seen = record(random, arrived)
        keyed = await apart.observe(seen, READING.reads(seen.state.payment, Environment()))
        own = await together.observe(seen, (), OWN)
        assert (own.values, own.lost) == (keyed.values, keyed.lost)
        what = random.random()
        if what < 0.1:
            await together.withdraw(own)
            await apart.withdraw(keyed)
        elif what < 0.4:
            decision = Decision(action="deny")
            before = (await together.settle(own, decision)).record.state
            assert before == (await apart.settle(keyed, decision)).record.state
            later = State(record(random, seen.time).state.payment, decision)
            update = Record(1, "p", seen.time, arrived, later, before)
            await together.observe(update, ())
            await apart.observe(update, ())


async def test_reads_with_keys_stand_behind_them() -> None:
    windows = await whole(READING.plan.series)
    seen = record(Random(2), START)
    keyed = READING.reads(seen.state.payment, Environment())
    values = (await windows.observe(seen, keyed, OWN)).values
    assert len(values) == 2 * len(keyed)
    assert values[: len(keyed)] == values[len(keyed) :]


async def test_a_series_that_is_not_whole_is_refused_and_nothing_is_counted() -> None:
    windows = await whole(READING.plan.series[:1])
    with pytest.raises(NotWholeError):
        await windows.observe(record(Random(2), START), (), OWN)
    assert (await windows.status(1)).entries == 0
    assert await windows.take_sequence() == 1


async def test_what_is_given_up_is_lost() -> None:
    windows = await whole(READING.plan.series, cap=20)
    random = Random(3)
    for number in range(40):
        observed = await windows.observe(record(random, START + number), (), OWN)
    assert observed.lost
    assert all(observed.values[index] is None for index in observed.lost)
    assert (await windows.status(1)).over_cap


class Unreadable(MemorySeenTimes):
    """Seen times in a file that can't be used."""

    def first(self, group: Group) -> int | None:
        raise JournalError("the disk is gone")


async def test_a_payment_whose_ages_cannot_be_read_leaves_nothing() -> None:
    windows = await whole(READING.plan.series, seen_times=lambda _account, _series: Unreadable())
    random, failed = Random(2), 0
    for number in range(20):
        try:
            await windows.withdraw(await windows.observe(record(random, START + number), (), OWN))
        except JournalError:
            failed += 1
    assert failed
    assert (await windows.status(1)).entries == 0
