"""Whatever happened, the index finds and counts what a plain reading of the journal does."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args
from unittest import mock

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.labels.label import VERDICTS
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry.changes import Costs, Thresholds
from tollkeeper.engine.search import runs, settled, totals
from tollkeeper.engine.search.figures import figures
from tollkeeper.engine.search.filters import Filter, read_filter, read_members
from tollkeeper.engine.search.find import CountPayments, FindPayments, Sort
from tollkeeper.engine.search.find_naming import find_naming
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.holdout import FindFalsePositives
from tollkeeper.engine.search.movers import FindMovers
from tollkeeper.engine.search.performance import MATURE, performance
from tollkeeper.engine.search.reading import AccountIndex, open_index
from tollkeeper.engine.search.related import FindRelated
from tollkeeper.engine.search.scores import FindScores
from tollkeeper.engine.search.tally import Tally
from tollkeeper.engine.search.thresholds import (
    FindScoreBands,
    ScoreBand,
    cheapest,
    outcome,
    usual_currency,
)
from tollkeeper.tests.engine.happenings import DAY, USERS, bare, happen, steps
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop
from tollkeeper.tests.engine.search.plain import Plain, chosen, recount

RULE = """
rule checkout
  condition often when count(payments by user.id over 3d) > 3 then deny
  condition small when amount < 3.00 then challenge
"""
members = st.sampled_from(
    [
        "action:allow",
        "action:challenge",
        "action:none",
        "rule:checkout",
        "rule:none",
        "version:1",
        "condition:often",
        "condition:small",
        "condition:none",
        "action:deny",
        "holdout:true",
        "holdout:false",
        "status:initiated",
        "status:declined",
        "status:succeeded",
        "label:fraud",
        "label:legitimate",
        "label:unsure",
        "label:none",
        "labelled:review:fraud",
        "labelled:review:legitimate",
        "labelled:chargeback:unsure",
        "merchant:m",
        "merchant:other",
        "currency:BRL",
        "card:40000000-1111",
        "card:40000000-2222",
        "bin:40000000",
        "bin:400000",
        "ip:198.51.99.7",
        "user:u",
        "user:v",
        "since:1d",
        "until:1h",
        "score:0.02..0.5",
        "id:p-1",
    ]
)
texts = st.lists(members, max_size=3).map(" ".join)


async def compare(
    folder: Path, happened: list[Any], asked: list[str], stops: list[int], extended: int
) -> None:
    async with open_shop(folder) as shop:
        settings = {"retention_days": 6, "holdout": {"percent": 60}}
        await shop.do(ChangeSettings("shop", settings))
        await shop.publish(RULE)
        with (
            closing(Follower(folder)) as follower,
            mock.patch.object(totals, "_LEFT_ALONE", 0),
            mock.patch.object(totals, "_FEW", 0),
            mock.patch.object(settled, "FEW_MEMBERS", 0),
            mock.patch.object(totals, "MOST_LISTED_BYTES", 4),
            mock.patch.object(runs, "is_list", lambda stored: len(stored) <= 4),
            mock.patch.object(runs, "_OPEN", -64),
            mock.patch.object(runs, "_AT_ONCE", 20),
        ):

            async def follow(_shop: Shop) -> None:
                await shop.engine.journal.flush()
                follower.catch_up()
                while follower.keep_totals():
                    pass
                # Not up to the end: a run may be asked while it is being made, of blocks or of runs.
                for _ in range(extended):
                    follower.extend_run()

            for stop in sorted(stops, reverse=True):
                happened = [*happened[:stop], (0, ("call", follow)), *happened[stop:]]
            await happen(shop, happened)
            await follow(shop)
        payments = await recount(shop)
        assert_naming(folder, shop)
        # So few payments are else counted one by one, and no set is laid over another.
        with (
            mock.patch.object(settled, "FEW_MEMBERS", 0),
            open_index(folder, shop.account) as index,
        ):
            assert_same(index, shop, payments, asked)
        with_new_index(folder, shop, payments, asked)


def with_new_index(folder: Path, shop: Shop, payments: list[Plain], asked: list[str]) -> None:
    (folder / "search.db").unlink()
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    with open_index(folder, shop.account) as index:
        assert_same(index, shop, payments, asked)


def assert_naming(folder: Path, shop: Shop) -> None:
    """Whatever names a user is found by the name, and nothing else is."""
    entries = [entry for batch in shop.engine.journal.replay(shop.account) for entry in batch]
    for user in USERS:
        paid = {
            entry.id
            for entry in entries
            if entry.kind in (Kind.PAYMENT, Kind.UPDATE)
            and msgspec.json.decode(entry.body)["payment"].get("user") == {"id": user}
        }
        made = [each.sequence for each in entries if each.kind == Kind.PAYMENT and each.id in paid]
        found = find_naming(folder, shop.account, [user])
        assert (found.payments, found.texts) == (made, [])
        labels = [each for each in entries if each.kind == Kind.LABEL]
        assert found.free_texts == [each.sequence for each in labels if b'"reason"' in each.body]


def assert_same(index: AccountIndex, shop: Shop, payments: list[Plain], asked: list[str]) -> None:
    for text in asked:
        wanted = read_filter(read_members(text), shop.now)
        expected = [each.sequence for each in chosen(payments, text, shop.now)]
        assert paged(index, wanted, "oldest") == expected, text
        assert paged(index, wanted, "newest") == expected[::-1], text
        dear = {each.sequence: -each.payment.amount for each in payments}
        assert paged(index, wanted, "dearest") == sorted(expected, key=dear.__getitem__), text
        assert CountPayments(wanted).answer(index) == len(expected), text
        assert_figures(index, shop, payments, text)
        assert_scores(index, shop, payments, text)
        assert_bands(index, shop, payments, text)
    for payment in payments:
        assert_related(index, payments, payment)
    # Also as if half of the payments were old enough for a label to have come.
    middle = payments[len(payments) // 2].arrived if payments else shop.now
    for until in (shop.now + 1, middle + MATURE):
        assert_performance(index, shop, payments, until)
    assert_movers(index, shop, payments)


def paged(index: AccountIndex, wanted: Filter, sort: Sort) -> list[int]:
    """What is found, three payments at a time."""
    page = FindPayments(wanted, None, 3, sort).answer(index)
    found = [each.sequence for each in page.payments]
    while page.cursor is not None:
        page = FindPayments(wanted, page.cursor, 3, sort).answer(index)
        found += [each.sequence for each in page.payments]
    return found


def assert_figures(index: AccountIndex, shop: Shop, payments: list[Plain], text: str) -> None:
    wanted = read_filter(read_members(text), shop.now)
    since = shop.now - 9 * DAY if wanted.since is None else wanted.since
    until = shop.now + 1 if wanted.until is None else wanted.until
    meant = [each for each in chosen(payments, text, shop.now) if since <= each.arrived < until]
    for every in (None, "hour", "day"):
        found = figures(index, wanted, since, until, every, "America/Sao_Paulo", None, True)
        assert (found[0].start, found[-1].end) == (since, until)
        for figure in found:
            own = [each for each in meant if figure.start <= each.arrived < figure.end]
            assert figure.tally == tally_of(own), (text, every)
            assert figure.money == ({"BRL": money_of(own)} if own else {})
    for by in ("action", "status", "label", "rule", "condition", "version", "merchant"):
        split = figures(index, wanted, since, until, None, "UTC", by, True)  # type: ignore[arg-type]
        assert sum(figure.tally.payments for figure in split) == len(meant)
        for figure in split:
            own = [each for each in meant if by_value(each, by) == figure.by]
            assert figure.tally == tally_of(own), (text, by, figure.by)
            assert figure.money == {"BRL": money_of(own)}


def by_value(payment: Plain, by: str) -> str | None:
    rule = payment.decision.rule
    return {
        "action": answered_action(payment.decision) or "none",
        "status": payment.payment.status,
        "label": payment.label or "none",
        "rule": "none" if rule is None else rule.name,
        "condition": "none" if rule is None else rule.condition or "none",
        "version": "none" if rule is None else str(rule.version),
        "merchant": payment.payment.merchant.id,
    }[by]


def money_of(payments: list[Plain]) -> int:
    return sum(round((each.payment.amount or 0) * 100) for each in payments)


def tally_of(payments: list[Plain]) -> Tally:
    actions = Counter(answered_action(each.decision) for each in payments)
    statuses = Counter(each.payment.status for each in payments)
    labels = Counter(each.label for each in payments)
    return Tally(
        len(payments),
        {name: actions[name] for name in ("allow", "challenge", "deny")},
        {name: statuses[name] for name in get_args(PaymentStatus)},
        {name: labels[name] for name in VERDICTS},
    )


def assert_scores(index: AccountIndex, shop: Shop, payments: list[Plain], text: str) -> None:
    wanted = read_filter(read_members(text), shop.now)
    meant = chosen(payments, text, shop.now)
    found = FindScores(wanted, "label").answer(index)
    assert [bucket.score for bucket in found] == list(range(101))
    for bucket in found:
        own = [each for each in meant if each.decision.score == bucket.score]
        assert bucket.payments == len(own)
        assert bucket.by == dict(Counter(each.label for each in own if each.label))


def assert_bands(index: AccountIndex, shop: Shop, payments: list[Plain], text: str) -> None:
    """As if half of the payments were old enough for a label to have come."""
    wanted = read_filter(read_members(text), shop.now)
    meant = chosen(payments, text, shop.now)
    now = (meant[len(meant) // 2].arrived if meant else shop.now) + MATURE
    bands = FindScoreBands(wanted, now).answer(index)
    for band in bands:
        own = [each for each in meant if each.decision.score == band.score]
        frauds = [each for each in own if each.label == "fraud"]
        people = [
            each
            for each in own
            if each.label == "legitimate" or (each.label is None and each.arrived < now - MATURE)
        ]
        young = [each for each in own if each.label is None and each not in people]
        assert band.unripe == len(young)
        for paid, expected in ((band.people, people), (band.frauds, frauds)):
            assert paid.payments == sum(paid.counts.values()) == len(expected)
            assert sum(paid.money.values()) == money_of(expected)
    assert_cheapest(bands)
    held_out = [each for each in meant if each.decision.held_out]
    frauds = [each for each in held_out if each.label == "fraud"]
    young = [each for each in held_out if each.label is None and each.arrived >= now - MATURE]
    unsure = [each for each in held_out if each.label == "unsure"]
    counted = FindFalsePositives(wanted, now).answer(index)
    assert (counted.frauds, counted.unripe) == (len(frauds), len(young))
    assert counted.people == len(held_out) - len(frauds) - len(young) - len(unsure)


def assert_cheapest(bands: list[ScoreBand]) -> None:
    """No other pair costs less; tried on a few bands, as every pair is tried."""
    costs, currency = Costs(), usual_currency(bands)
    if currency is None:
        return
    best = cheapest(bands, costs, currency).cost[currency]
    for challenge, deny in ((1, 100), (50, 85), (100, 100), (1, 1), (30, 60)):
        tried = outcome(bands, Thresholds(challenge, deny), costs)
        assert tried.cost[currency] >= best - 1


def assert_performance(index: AccountIndex, shop: Shop, payments: list[Plain], until: int) -> None:
    since = shop.now - 9 * DAY
    found = performance(index, NAME, ((1, "often"), (1, "small")), since, until, 2, "UTC")
    ever = [each for each in payments if each.decision.rule is not None]
    ruled = [each for each in ever if since <= each.arrived < until]
    assert sum(each.tally.payments for each in found) == len(ruled)
    for each in found:
        own = [one for one in ruled if one.decision.rule.condition == each.condition]
        assert each.tally == tally_of(own)
        assert each.money == ({"BRL": money_of(own)} if own else {})
        met = [one for one in ever if one.decision.rule.condition == each.condition]
        assert each.last == (met[-1].arrived if met else None)
        assert sum(each.trend) == len(own)
        assert each.by_score_too == sum((one.decision.score or 0) >= 2 for one in own)
        young = sum(one.arrived >= until - MATURE for one in own)
        assert each.immature == (young / len(own) if own else None)
        sure = [one.label for one in own if one.label in ("fraud", "legitimate")]
        assert (each.precision.labelled, each.precision.fraud) == (len(sure), sure.count("fraud"))
        denied = [one for one in own if answered_action(one.decision) == "deny"]
        newest = denied[::-1]
        assert each.came_back.refused == tuple(one.id for one in newest)
        followed = tuple(one.id for one in newest if came_back(one, payments))
        assert each.came_back.followed == followed


def came_back(refused: Plain, payments: list[Plain]) -> bool:
    user = refused.payment.user and refused.payment.user.id
    return any(
        later.payment.status == "succeeded"
        and refused.arrived <= later.arrived < refused.arrived + 7 * DAY
        and (
            (refused.card is not None and later.card == refused.card)
            or (user is not None and later.has("user", user))
        )
        for later in payments
        if later.sequence > refused.sequence
    )


def assert_movers(index: AccountIndex, shop: Shop, payments: list[Plain]) -> None:
    since, until = shop.now - 2 * DAY, shop.now + 1
    asked = ("user", "card", "bin", "condition"), since, until
    found = FindMovers(*asked, 50).answer(index)
    weeks = [7 * DAY * week for week in range(1, 5)]
    for mover in found:
        own = [each for each in payments if each.has(mover.by, mover.value)]
        recent = [each for each in own if since <= each.arrived < until]
        assert mover.tally == tally_of(recent)
        before = [each for each in own for back in weeks if since <= each.arrived + back < until]
        assert mover.payments > mover.usual == len(before) / 4
    recent = [each for each in payments if since <= each.arrived < until]
    for by in ("user", "card"):
        moving = {each.value for each in found if each.by == by}
        values = {value for each in recent if (value := entity_of(each, by)) is not None}
        assert moving <= values
        # Those who are left out had as many payments in the weeks before.
        for value in values - moving:
            own = [each for each in payments if each.has(by, value)]
            before = [
                each for each in own for back in weeks if since <= each.arrived + back < until
            ]
            assert sum(each.arrived >= since for each in own) <= len(before) / 4
    surprises = [(each.payments - each.usual) / (each.usual + 1) ** 0.5 for each in found]
    assert surprises == sorted(surprises, reverse=True)
    assert FindMovers(*asked, 3).answer(index) == found[:3]


def entity_of(payment: Plain, by: str) -> str | None:
    """The value by which movers know a payment's card or user."""
    if by == "card":
        return payment.card
    return None if payment.payment.user is None else payment.payment.user.id


def assert_related(index: AccountIndex, payments: list[Plain], payment: Plain) -> None:
    shared = FindRelated(payment.id, None).answer(index)
    assert shared is not None
    for each in shared:
        if each.by == "network":
            continue
        same = [other for other in payments if other.has(each.by, each.value)]
        assert (each.first, each.last) == (same[0].arrived, same[-1].arrived)
        assert each.tally == tally_of(same)


@settings(max_examples=10, deadline=None)
@given(
    happened=steps,
    asked=st.lists(texts, min_size=1, max_size=8),
    stops=st.lists(st.integers(0, 13), max_size=4),
    extended=st.integers(1, 8),
)
@example(
    [
        (0, ("pay", bare())),
        (1, ("label", (0, "review", "fraud"))),
        (1, ("update", (0, "succeeded", "2222"))),
        (1, ("label", (0, "chargeback", "legitimate"))),
        (1, ("erase", "u")),
        (1, ("label", (0, "chargeback", None))),
    ],
    ["", "label:fraud", "labelled:review:fraud", "user:u", "card:40000000-2222"],
    [1, 4],
    8,
)
@example([(0, ("pay", bare())), *4 * [(4 * DAY, ("write", None))]], ["", "user:u"], [], 1)
@example(
    [(0, ("pay", bare())), (4 * DAY, ("pay", bare())), (4 * DAY, ("purge", None))],
    ["", "user:u"],
    [1, 2],
    1,
)
@example(
    [
        *2 * [(0, ("pay", bare()))],
        (4 * DAY, ("write", None)),
        (4 * DAY, ("purge", None)),
        (0, ("pay", bare())),
    ],
    ["", "user:u"],
    [3, 4],
    1,
)
@example([(0, ("pay", bare())), (1, ("label", (0, "review", "fraud")))], [""], [1], 8)
def test_what_is_found_is_what_the_journal_says(
    happened: list[Any], asked: list[str], stops: list[int], extended: int
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(compare(Path(folder), happened, asked, stops, extended))
