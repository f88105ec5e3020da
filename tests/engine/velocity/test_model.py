"""Every read agrees with a recount of everything that ever happened, whatever happens."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    multiple,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.velocity import account, groups, run, tree
from tollkeeper.engine.velocity.contract import Fill, Observation, Record, State
from tollkeeper.engine.velocity.series import PLAIN
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.engine.velocity.worlds import (
    AGES,
    DAY,
    HOUR,
    KINDS,
    MEMORIES,
    MINUTE,
    START,
    Paid,
    Recount,
    plan,
    same,
    window,
)

EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", "20"))
OVERS = (MINUTE, HOUR, DAY, 7 * DAY)
ACCOUNTS = (1, 2)

facts = st.builds(
    Paid,
    ip=st.sampled_from(["a", "a", "a", "b", None]),
    card=st.sampled_from(["x", "y", "z", None]),
    amount=st.sampled_from([None, 0, 1, 250, -(10**18), 10**37, 9 * 10**37]),
    ratio=st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.1, 1e308]),
    status=st.sampled_from(["declined", "succeeded", None]),
    attempts=st.lists(st.sampled_from([None, 1, 2, 30]), max_size=3).map(tuple),
)
steps = st.sampled_from([0, 0, 0, 1, 20_000_000, MINUTE, HOUR, 11 * HOUR, DAY, 3 * DAY, 40 * DAY])
lateness = st.sampled_from([0, 0, 0, 1, 20_000_000, MINUTE, HOUR, 23 * HOUR, DAY])


@dataclass
class Kept:
    """A record as the journal has it: `entries` are its states with their places."""

    created: int
    record: Record
    entries: list[tuple[int, State]] = field(default_factory=list)


class History(RuleBasedStateMachine):
    observed = Bundle("observed")
    fills = Bundle("fills")
    memory = PLAIN

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.windows = Windows(memory=self.memory)
        self.models = {number: Recount() for number in ACCOUNTS}
        self.kept: dict[int, dict[int, Kept]] = {number: {} for number in ACCOUNTS}
        self.whole: dict[int, dict[str, tuple[int | None, bool]]] = {n: {} for n in ACCOUNTS}
        self.filling: dict[Fill, tuple[list[Any], list[Record]]] = {}
        self.filled_up_to = dict.fromkeys(ACCOUNTS, 0)
        self.now = START

    def do(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        self.runner.close()

    def reads(self, number: int) -> list[Any]:
        return [
            (window(name, function, over, earlier=earlier), key)
            for name, (longest, ages) in self.whole[number].items()
            for function in KINDS[name].functions
            for over in (
                [None] * ages
                if function in AGES
                else [each for each in OVERS if longest is not None and each <= longest]
            )
            for earlier in ([False] if over is None else [False, True])
            for key in keys(name)
        ]

    def check(
        self, number: int, reads: list[Any], values: Any, at: int, before: int | None
    ) -> None:
        for (read, key), value in zip(reads, values, strict=True):
            expected = self.models[number].read(read, key, at, before=before)
            assert same(value, expected), (read, key, value, expected)

    @rule(target=observed, number=st.sampled_from(ACCOUNTS), facts=facts, step=steps, late=lateness)
    def create(self, number: int, facts: Paid, step: int, late: int) -> Any:
        self.now += step
        time = self.now - late
        return self.arrive(Record(number, "p", time, self.now, State(payment=facts)))

    @rule(
        target=observed,
        number=st.sampled_from(ACCOUNTS),
        facts=facts,
        late=lateness,
        times=st.integers(5, 12),
    )
    def burst(self, number: int, facts: Paid, late: int, times: int) -> Any:
        return multiple(
            *(
                self.arrive(
                    Record(number, "p", self.now - late + i, self.now, State(payment=facts))
                )
                for i in range(-times, 0)
            )
        )

    @rule(
        target=observed, number=st.sampled_from(ACCOUNTS), user=st.sampled_from("uv"), late=lateness
    )
    def sign_in(self, number: int, user: str, late: int) -> Any:
        state = State(data={"user": user})
        return self.arrive(Record(number, "e", self.now - late, self.now, state, event="signin"))

    def arrive(self, record: Record) -> Observation:
        reads = self.reads(record.account)
        observation = self.do(self.windows.observe(record, reads))
        sequence = observation.sequence
        self.models[record.account].observe(sequence, record)
        self.kept[record.account][sequence] = Kept(sequence, record, [(sequence, record.state)])
        assert observation.lost == ()
        self.check(record.account, reads, observation.values, record.time, sequence)
        return observation

    @rule(observation=observed, action=st.sampled_from(["deny", "allow"]))
    def settle(self, observation: Observation, action: Any) -> None:
        kept = self.kept[observation.record.account].get(observation.sequence)
        if kept is None or len(kept.entries) > 1 or kept.entries[0][1].decision is not None:
            return
        if self.is_read_from_the_journal(observation):
            return
        settled = self.do(self.windows.settle(observation, Decision(action=action)))
        kept.entries = [(observation.sequence, settled.record.state)]
        self.models[observation.record.account].settle(observation.sequence, settled.record.state)

    @rule(observation=observed, facts=facts, step=steps, refused=st.booleans())
    def update(self, observation: Observation, facts: Paid, step: int, refused: bool) -> None:
        record = observation.record
        kept = self.kept[record.account].get(observation.sequence)
        if kept is None or record.event is not None:
            return
        self.now += step
        before = kept.entries[-1][1]
        after = replace(before, payment=facts)
        updated = Record(record.account, "p", record.time, self.now, after, before)
        observed = self.do(self.windows.observe(updated, []))
        if refused:
            self.do(self.windows.withdraw(observed))
        else:
            kept.entries.append((observed.sequence, after))
            self.models[record.account].settle(observation.sequence, after)

    @rule(observation=consumes(observed))
    def withdraw(self, observation: Observation) -> None:
        number, sequence = observation.record.account, observation.sequence
        kept = self.kept[number].get(sequence)
        if kept is None or len(kept.entries) > 1 or self.is_read_from_the_journal(observation):
            return
        state = kept.entries[0][1]
        withdrawn = replace(observation, record=replace(observation.record, state=state))
        self.do(self.windows.withdraw(withdrawn))
        del self.kept[number][sequence]
        del self.models[number].records[sequence]

    def is_read_from_the_journal(self, observation: Observation) -> bool:
        """Whether a fill relies on the record having been written or refused."""
        number = observation.record.account
        up_to = [fill.up_to for fill in self.filling if fill.account == number]
        return observation.sequence <= max([self.filled_up_to[number], *up_to])

    @rule(
        target=fills,
        number=st.sampled_from(ACCOUNTS),
        names=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True),
        over=st.sampled_from(OVERS),
        data=st.data(),
    )
    def begin(self, number: int, names: list[str], over: int, data: Any) -> Any:
        if any(fill.account == number for fill in self.filling):
            return multiple()
        plans = [plan(name, over, ages="age" in KINDS[name].functions) for name in names]
        fill = self.do(self.windows.add(number, plans))
        records = self.stored(number, fill.up_to, once=data.draw(st.booleans()))
        self.filling[fill] = (plans, records)
        return fill

    def stored(self, number: int, up_to: int, once: bool) -> list[Record]:
        """The journal's records, updates on their own or each payment once as known."""
        found: list[tuple[int, Record]] = []
        for kept in self.kept[number].values():
            entries = [entry for entry in kept.entries if entry[0] <= up_to]
            if once:
                entries = entries[:1] and [(entries[0][0], entries[-1][1])]
            before = None
            for sequence, state in entries:
                found.append((sequence, replace(kept.record, state=state, before=before)))
                before = state
        return [record for _, record in sorted(found, key=lambda each: each[0])]

    @rule(fill=fills, size=st.integers(1, 9))
    def feed(self, fill: Fill, size: int) -> None:
        if fill not in self.filling:
            return
        plans, records = self.filling[fill]
        self.do(self.windows.fill(fill, records[:size]))
        self.filling[fill] = (plans, records[size:])

    @rule(fill=fills)
    def finish(self, fill: Fill) -> None:
        if fill not in self.filling:
            return
        plans, records = self.filling.pop(fill)
        self.do(self.windows.fill(fill, records))
        while not self.do(self.windows.seal(fill)):
            pass
        self.filled_up_to[fill.account] = fill.up_to
        whole = self.whole[fill.account]
        for each in plans:
            over, ages = whole.get(each.digest, (None, False))
            whole[each.digest] = (max(over or 0, each.over), ages or each.ages)

    @rule(number=st.sampled_from(ACCOUNTS), data=st.data())
    def keep(self, number: int, data: Any) -> None:
        whole = self.whole[number]
        names = data.draw(st.lists(st.sampled_from(sorted(KINDS)), unique=True))
        over = data.draw(st.sampled_from(OVERS))
        for fill in [fill for fill in self.filling if fill.account == number]:
            del self.filling[fill]
        plans = [plan(name, over, ages=whole[name][1]) for name in names if name in whole]
        self.do(self.windows.keep(number, plans))
        self.whole[number] = {
            name: (min(whole[name][0] or 0, over), whole[name][1])
            for name in names
            if name in whole
        }

    @rule(cuts=st.lists(st.integers(0, 100), min_size=1, max_size=4).map(sorted), late=lateness)
    def follow(self, cuts: list[int], late: int) -> None:
        """Another process fills its windows up to one place, follows from there, and reads alike."""
        last = max(self.do(self.windows.take_sequence()) - 1, 1)
        places = [last * cut // 100 for cut in cuts]
        follower = Windows(places[0], memory=self.memory)
        for number, whole in self.whole.items():
            plans = [plan(name, over, ages=ages) for name, (over, ages) in whole.items()]
            fill = self.do(follower.add(number, plans))
            self.do(follower.fill(fill, self.stored(number, places[0], once=True)))
            while not self.do(follower.seal(fill)):
                pass
        for after, up_to in pairwise((*places, last)):
            records = {number: self.brought(number, after, up_to) for number in ACCOUNTS}
            self.do(follower.follow(records, up_to))
        for number in ACCOUNTS:
            at, reads = self.now - late, self.reads(number)
            self.check(number, reads, self.do(follower.read(number, at, reads)), at, None)
        assert self.do(follower.take_sequence()) == last + 1

    def brought(self, number: int, after: int, up_to: int) -> list[Record]:
        """What the journal has beyond one place up to another, each payment once."""
        found = []
        for kept in self.kept[number].values():
            known = [state for sequence, state in kept.entries if sequence <= up_to]
            before = [state for sequence, state in kept.entries if sequence <= after]
            if len(known) > len(before):
                last = before[-1] if before else None
                found.append(replace(kept.record, state=known[-1], before=last))
        return found

    @rule(number=st.sampled_from(ACCOUNTS), late=lateness)
    def look(self, number: int, late: int) -> None:
        at = self.now - late
        reads = self.reads(number)
        self.check(number, reads, self.do(self.windows.read(number, at, reads)), at, None)


def keys(name: str) -> list[tuple[str, ...] | None]:
    if name == "amounts":
        return [("a", "x"), ("a", "y"), ("b", "z"), None]
    return [("u",)] if name == "signins" else [("a",), ("b",), None]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("tight", [False, True], ids=["as_shipped", "tight_bounds"])
def test_every_read_is_what_a_recount_of_the_whole_history_gives(
    tight: bool, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tight:
        monkeypatch.setattr(run, "FAR_BACK", 4)
        monkeypatch.setattr(tree, "LEAF", 2)
        monkeypatch.setattr(tree, "FAN", 3)
        monkeypatch.setattr(run, "PUT_EXPIRES", 2)
        monkeypatch.setattr(run, "SWEEP_EXPIRES", 1)
        monkeypatch.setattr(groups, "SWEEP", 2)
        monkeypatch.setattr(account, "SEAL_STEP", 1)
    run_state_machine_as_test(
        type(
            "History",
            (History,),
            {"memory": MEMORIES[memory]._replace(few=2) if tight else MEMORIES[memory]},
        ),
        settings=settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None),
    )
