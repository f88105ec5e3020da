"""A replay's windows answer what the live ones answer, whatever happened and in whatever order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.facts.facts import derive, record
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import HOUR, from_microseconds
from tollkeeper.engine.intake.payment import (
    Card,
    Connector,
    Merchant,
    Method,
    Payment,
    Transaction,
    Update,
    User,
)
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import Label, add_label, encode_label
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.plan import plan_rule
from tollkeeper.engine.offline.backtest.planned_windows import PlannedWindows
from tollkeeper.engine.offline.testing.environments import (
    empty_contents,
    environment_of,
    with_entries,
)
from tollkeeper.engine.programs.loaded import load_rule
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.engine.update import apply_update
from tollkeeper.engine.velocity.contract import LATE, Record, State
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule, Value
from tollkeeper.tests.examples import examples

START = 1_789_000_000_000_000
RULE = b"""
rule windows
  list cards: string
  table banks by prefix: name: string
  let listed = method.card.fingerprint in @cards
  condition all_of_them
    when count(payments by user.id over 1h) > 1
     and count(payments by user.id over 40h) > 1
     and sum(payments.amount by user.id over 2h where status == "succeeded") > 1
     and distinct(payments.method.card.fingerprint by user.id, currency over 30h) > 1
     and min(payments.amount by method.card.fingerprint over 50h) > 1
     and count(transactions by user.id over 30h where status == "declined") > 1
     and avg(transactions.duration by method.card.network over 3h) > 1
     and any(payments by user.id over 5h where amount > 5)
     and all(payments by method.card.fingerprint over 5h where status != "failed")
     and age(payments by method.card.fingerprint) > 1h
     and interval(payments by user.id) > 1h
     and age(payments by user.id where status == "declined") > 1h
     and first(payments by user.id, method.card.fingerprint)
     and first(payments by user.id where status == "declined")
     and count(earlier payments by user.id over 1h) > 1
     and max(earlier payments.amount by user.id over 40h) > 1
     and count(earlier transactions by user.id over 2h where status == "declined") > 1
     and all(earlier payments by method.card.fingerprint over 5h where status != "failed")
     and sum(amount * 2 + 1 of payments by user.id over 3h) > 1
     and distinct(earlier coalesce(order.id, user.id) of payments by user.id over 3h) > 1
     and count(payments by user.id over 9h where decision.action == "deny") > 1
     and max(payments.amount by user.id over 9h where decision.condition == "met") > 1
     and count(payments by user.id over 9h where listed) > 1
     and first(payments by @banks[method.card.bin].name where method.card.fingerprint not in @cards)
     and distinct(@banks[method.card.bin].name of payments by user.id over 9h) > 1
     and decay(count of payments by user.id half life 1h where status == "declined") > 1
     and decay(sum(amount - 4) of payments by user.id half life 9h) > 1
     and decay(earlier sum(duration) of transactions by user.id half life 1h) > 1
     and streak(payments by user.id where status == "declined") > 1
     and streak(earlier payments by user.id, currency where amount > 3) > 1
     and count(payments by user.id over 9h where label == "fraud") > 1
     and first(payments by method.card.fingerprint where label != "legitimate")
     and sum(amount_in("USD") of payments by user.id over 30h where status == "declined") > 1
    then deny
"""

program = read_file(RULE, KnownNames()).program
assert isinstance(program, Rule)


def given_lists(cards: list[str], banks: dict[str, str], price: int) -> Environment:
    entries = {
        "cards": [{"value": each} for each in cards],
        "banks": [{"value": bin_, "columns": {"name": name}} for bin_, name in banks.items()],
    }
    held = {
        name: with_entries(name, contents, entries[name])
        for name, contents in empty_contents([program]).items()
    }
    return replace(environment_of(held), rates={("BRL", "USD"): price})


MET = (
    Environment(),
    given_lists(["41111111-1111"], {"4": "one"}, 2 * 10**9),
    given_lists(["42222222-1111"], {"42": "two", "4": "one"}, 3 * 10**9),
)
"""What payments may meet."""
LOADED = load_rule(program, 1, full_vocabulary())

cards = st.builds(
    Card,
    network=st.sampled_from(["visa", "elo"]),
    presence=st.just("card_not_present"),
    bin=st.none() | st.sampled_from(["41111111", "42222222"]),
    last_four=st.sampled_from(["1111", "2222"]),
)
attempts = st.builds(
    Transaction,
    status=st.sampled_from(["succeeded", "declined"]),
    connector=st.just(Connector("c", None, "00")),
    duration=st.none() | st.integers(0, 5),
    timestamp=st.just(from_microseconds(START)),
)
payments = st.fixed_dictionaries(
    {
        "late": st.sampled_from([0, 0, 0, HOUR, 24 * HOUR, 26 * HOUR]),
        "user": st.none() | st.sampled_from(["u", "v"]),
        "amount": st.none() | st.integers(0, 9),
        "card": st.none() | cards,
        "transactions": st.lists(attempts, max_size=2).map(tuple),
        "status": st.sampled_from(["initiated", "declined"]),
        "action": st.sampled_from(["allow", "deny"]),
        "condition": st.none() | st.just("met"),
        "met": st.integers(0, 2),
    }
)
updates = st.builds(
    Update,
    status=st.sampled_from(["succeeded", "declined", "failed"]),
    transactions=st.lists(attempts, max_size=2).map(tuple),
)
labels = st.builds(
    Label,
    source=st.sampled_from(["chargeback", "review"]),
    label=st.none() | st.sampled_from(["fraud", "legitimate", "unsure"]),
    at=st.just(START),
    by=st.just("test"),
)
steps = st.lists(
    st.tuples(
        st.sampled_from([0, 1, HOUR // 2, 3 * HOUR, 30 * HOUR]),
        payments | st.tuples(st.integers(0, 20), updates | labels),
    ),
    min_size=1,
    max_size=25,
)


def paid(number: int, arrived: int, sent: dict[str, Any]) -> Payment:
    return Payment(
        id=f"p-{number}",
        type="purchase",
        status=sent["status"],
        currency="BRL",
        amount=sent["amount"],
        timestamp=from_microseconds(arrived - sent["late"]),
        method=Method(type="card", card=sent["card"]),
        user=None if sent["user"] is None else User(sent["user"]),
        merchant=Merchant("m"),
        transactions=sent["transactions"],
    )


def entry(kind: Kind, arrived: int, state: State) -> Entry:
    facts = state.payment
    return Entry(
        sequence=1,
        account=1,
        kind=kind,
        id=facts.payment.id,
        arrived=arrived,
        time=facts.timestamp,
        body=encode_stored(record(facts)),
    )


async def live_and_replayed(
    happened: list[tuple[int, Any]], unread: int, late: int
) -> tuple[list[list[Value | None]], list[list[Value | None]]]:
    """What each payment read in both, but for the first ones, which a replay only counts.

    Each comes after what it is to meet: the networks that are blocked, and the rate.
    """
    plan = plan_rule(program, LOADED.reading, full_vocabulary(), late)
    live = Windows(late=late)
    again = PlannedWindows(plan)
    await live.seal(await live.add(1, LOADED.reading.plan.series))
    known: list[State] = []
    said: defaultdict[int, dict[Any, Any]] = defaultdict(dict)
    first: list[list[Value | None]] = []
    second: list[list[Value | None]] = []
    arrived = START
    for pause, what in happened:
        arrived += pause
        if isinstance(what, dict):
            met = MET[what["met"]]
            facts = derive(paid(len(known), arrived, what), arrived, lambda _headers: None)
            state = State(facts, environment=met)
            decision = Decision(what["action"], rule=AppliedRule("r", 1, what["condition"]))
            seen = Record(1, facts.payment.id, facts.timestamp, arrived, state)
            observed = await live.observe(seen, LOADED.reading.reads(facts, met))
            state = (await live.settle(observed, decision)).record.state
            partial = plan.facts(entry(Kind.PAYMENT, arrived, state))
            if len(known) < unread:
                again.count(facts.payment.id, partial, decision, met)
            else:
                first.append(list(observed.values))
                second.append(list(again.read(facts.payment.id, partial, decision, met)))
            known.append(state)
        elif what[0] < len(known):
            number, sent = what
            before = known[number]
            if isinstance(sent, Label):
                after = structs.replace(before, label=add_label(said[number], sent))
            else:
                changed = apply_update(before, sent, arrived)
                assert isinstance(changed, State)
                after = changed
            facts = after.payment
            seen = Record(1, facts.payment.id, facts.timestamp, arrived, after, before)
            await live.observe(seen, ())
            if isinstance(sent, Label):
                again.tell(entry(Kind.LABEL, arrived, after)._replace(body=encode_label(sent)))
            else:
                again.update(entry(Kind.UPDATE, arrived, after))
            known[number] = after
    return first, second


def bare(**more: Any) -> dict[str, Any]:
    plain = {"late": 0, "user": "u", "amount": 1, "card": None, "transactions": ()}
    decided = {"status": "initiated", "action": "deny", "condition": None, "met": 0}
    return {**plain, **decided, **more}


DECLINED = Transaction("declined", Connector("c", None, "51"), None, None, from_microseconds(START))


@settings(max_examples=examples(150), deadline=None)
@given(steps, st.integers(0, 5), st.sampled_from([2 * HOUR, LATE]))
@example([(0, bare(transactions=(DECLINED,))), (30 * HOUR, bare())], 0, LATE).via(
    "a window's beginning"
)
@example(
    [
        (0, bare()),
        (30 * HOUR, bare(status="declined")),
        (0, (0, Update("succeeded", None, ()))),
        (30 * HOUR, bare(status="declined")),
    ],
    0,
    LATE,
).via("a streak in the order in which payments arrived, not their updates")
def test_a_replay_reads_what_was_read_live(
    happened: list[tuple[int, Any]], unread: int, late: int
) -> None:
    live, again = asyncio.run(live_and_replayed(happened, unread, late))
    assert again == live
