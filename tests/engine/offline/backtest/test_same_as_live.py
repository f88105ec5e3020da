"""A replay decides what was decided live: same rule, same history, no difference."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest

from tollkeeper.engine.instants import from_microseconds, to_microseconds
from tollkeeper.engine.journal import schema
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.engine.offline.backtest.backtest import candidate_of
from tollkeeper.engine.offline.backtest.candidate import PastDecisionInFull
from tollkeeper.engine.offline.backtest.replay import ReplayedPayment, try_candidate
from tollkeeper.engine.offline.backtest.stored import account_now, stored_history
from tollkeeper.engine.programs.load import shipped_program
from tollkeeper.engine.publish.change_lists import PutEntries, RemoveEntries
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import version_in_force
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, evening, open_shop

MINUTE = 60_000_000

FIRST = """
rule checkout
  list blocked: string
  list offices: ip
  table bins by prefix: funding: "credit" | "debit" | "prepaid"
  let cards = distinct(payments.method.card.fingerprint by device.ip_address over 1h)
  let declined = count(transactions by device.fingerprint.id over 2h where status == "declined")
  let spent = sum(payments.amount by user.id, currency over 1d where status == "succeeded")
  condition blocked_card when method.card.fingerprint in @blocked then deny
  condition listed when count(payments by device.ip_address over 3h
    where method.card.fingerprint in @blocked) > 1 and amount > 70 then challenge
  condition converted when sum(amount_in("USD") of payments by user.id over 1d) > 70 and amount > 60 then challenge
  condition known_fraud when count(payments by device.ip_address over 3h where label == "fraud") > 0
    and amount > 60 then deny
  condition new_card when first(payments by user.id, method.card.fingerprint)
    and count(earlier payments by user.id over 1d) > 1 and amount > 50 then challenge
  condition office when device.ip_address in @offices then allow
  condition prepaid when @bins[method.card.bin].funding == "prepaid" and amount > 50 then challenge
  condition dear when amount_in("USD") > 60 then challenge
  condition many_cards when cards >= 3 then deny
  condition guessed when events.sign_in.failures[user.id] >= 2 then deny
  condition devices when events.sign_in.devices[user.id] > 2 and amount > 20 then challenge
  condition declines when declined > 2 or score >= 0.90 then deny
  condition spender when spent > 50 then challenge
  condition returning when count(payments by merchant.id over 1h where decision.action == "deny") > 6
    and interval(payments by user.id) < 1h then challenge
  condition funded when distinct(@bins[method.card.bin].funding of payments by user.id over 3h) > 0
    and count(payments by @bins[method.card.bin].funding over 20m) > 9 then challenge
  condition failing when any(payments by device.ip_address over 3h where status == "declined")
    and device.headers["User-Agent"] contains "Mozilla" then challenge
"""
SIGN_IN = """
event sign_in
  field user: string required
  field result: "success" | "failure" required
  field device: string
  field risk: number
  metric failures = count(events by user over 1h where result == "failure")
  metric devices = distinct(events.device by user over 1d)
"""
NEXT_SIGN_IN = """
event sign_in
  field user: string required
  field result: "success" | "failure" required
  field device: string
  field risk: string
  metric attempts = count(events by user over 2h)
  metric risks = distinct(events.risk by user over 1d)
  metric known_for = age(events by user where result == "success")
  metric since_last = interval(events by user)
"""
SECOND = """
rule checkout
  list blocked: string
  list offices: ip
  table bins by prefix: funding: "credit" | "debit" | "prepaid"
  let tries = count(payments by device.ip_address over 30m)
  let dearest = max(payments.amount by method.card.network over 4h where status != "initiated")
  let usual = avg(transactions.duration by merchant.id over 2h where status == "succeeded")
  condition blocked_card when method.card.fingerprint in @blocked then deny
  condition first_listed when since(payments by user.id where method.card.fingerprint in @blocked)
    < 3h and amount > 70 then challenge
  condition once_fraud when since(payments by user.id where label == "fraud") < 30m
    or distinct(label of payments by device.ip_address over 40m) > 1 then challenge
  condition pressing when decay(count of payments by device.ip_address half life 5m) > 6.5
    and amount > 50 then challenge
  condition refused when streak(payments by device.ip_address where status == "declined") > 4
    and amount > 30 then deny
  condition known when age(payments by user.id) > 40m and weekday(timestamp) == "monday" then allow
  condition tries when tries > 3 then challenge
  condition signing when events.sign_in.attempts[user.id] > 3 then challenge
  condition risks when events.sign_in.risks[user.id] >= 1 then challenge
  condition fresh when events.sign_in.known_for[user.id] < 10m then challenge
  condition hasty when events.sign_in.since_last[user.id] < 2m then challenge
  condition dear when sum(amount_in("USD") of payments by merchant.id over 1h
    where status != "initiated") > 200 then challenge
  condition office when count(earlier payments by @bins[method.card.bin].funding over 5m
    where device.ip_address not in @offices) > 3 then challenge
  condition dearest when amount >= dearest and hour(timestamp) >= 9 then challenge
  condition slow when min(transactions.duration) > usual * 2 then challenge
  otherwise allow
"""
SCORECARD = """
scorecard bot_behaviour
  baseline 0.05
  signal library adds 3 when device.client.kind == "library"
  signal cards adds 0.8 * distinct(payments.method.card.fingerprint by device.ip_address over 1h)
  signal declines adds 1.5 when count(transactions by merchant.id over 1h where status == "declined") > 4
"""


async def sign_in(shop: Shop, number: int, user: str) -> None:
    """Some sign-ins are late, and some say nothing of the device."""
    late = timedelta(hours=number % 5 * (number % 7 == 0))
    at = from_microseconds(shop.now) - late
    device = {} if number % 3 == 0 else {"device": f"d-{number % 4}"}
    in_force = version_in_force(
        shop.engine.state.accounts[shop.account].files["event", "sign_in"], to_microseconds(at)
    )
    assert in_force is not None
    data = {
        "user": user,
        "result": "success" if number % 4 else "failure",
        "risk": number % 10 if in_force.number == 1 else "high",
        **device,
    }
    await shop.happen({"type": "sign_in", "timestamp": at.isoformat(), "data": data})


async def _live(shop: Shop) -> None:
    """Traffic, and in between publishes, list changes, settings, a payment that comes late."""
    items = list(evening(seed=5))
    await shop.publish(SIGN_IN, "event", "sign_in")
    cards = [
        f"{card['bin']}-{card['last_four']}"
        for item in items
        if "payment" in item.body and "bin" in (card := item.body["payment"]["method"]["card"])
    ]
    steps: dict[int, Any] = {
        0: lambda: shop.publish(FIRST),
        1: lambda: shop.do(ChangeSettings("shop", {"default_rule": NAME})),
        len(items) // 8: lambda: shop.do(
            PutEntries("shop", "blocked", [{"value": card} for card in cards[::5]])
        ),
        len(items) // 7: lambda: shop.do(
            PutEntries("shop", "bins", [{"value": "4", "columns": {"funding": "prepaid"}}])
        ),
        len(items) // 6: lambda: shop.do(
            ChangeSettings(
                "shop", {"rates": {"BRL": {"USD": "0.2"}}, "time_zone": "America/Sao_Paulo"}
            )
        ),
        len(items) // 5: lambda: shop.do(RemoveEntries("shop", "blocked", [cards[0]])),
        len(items) // 4: lambda: shop.do(PutEntries("shop", "offices", [{"value": "240.0.0.0/5"}])),
        len(items) // 3: lambda: shop.do(
            ChangeSettings("shop", {"thresholds": {"challenge": 0.1, "deny": 0.4}})
        ),
        len(items) // 2: lambda: shop.publish(SCORECARD, "scorecard", "bot_behaviour"),
        len(items) * 4 // 7: lambda: shop.publish_later(NEXT_SIGN_IN, "event", "sign_in"),
        len(items) * 3 // 5: lambda: shop.publish(SECOND),
        len(items) * 4 // 5: lambda: shop.do(
            PutEntries("shop", "blocked", [{"value": card} for card in cards[1::4]])
        ),
    }
    for number, item in enumerate(items):
        if number in steps:
            await steps[number]()
        await shop.receive(item, rule=NAME if number % 3 else None)
        user = item.body.get("payment", {}).get("user", {})
        if "id" in user:
            await sign_in(shop, number, user["id"])
        if number % 9 == 5 and "payment" in items[number - 5].body:
            verdict: Any = ("fraud", "legitimate", "unsure", None)[number % 4]
            source: Any = ("chargeback", "review")[number % 2]
            of = items[number - 5].body["payment"]["id"]
            told = Label(source, verdict, shop.now, "test")
            await set_label(shop.engine, shop.account, of, told)
        if number % 50 == 7 and "payment" in item.body:
            shop.now += 2 * MINUTE
            late = {**item.body["payment"], "id": f"late-{number}"}
            await shop.create({**late, "analyze": {"bot_behaviour": True}})


_EVENING = TemporaryDirectory()


@cache
def an_eventful_evening() -> Path:
    """The data of a shop that has lived it, made once: tests leave it as it is."""

    async def live() -> None:
        async with open_shop(Path(_EVENING.name)) as shop:
            await _live(shop)

    asyncio.run(live())
    return Path(_EVENING.name)


@pytest.fixture(scope="module")
def folder() -> Path:
    return an_eventful_evening()


in_full = msgspec.json.Decoder(PastDecisionInFull).decode


def replayed(folder: Path, program: Rule | Scorecard, since: int = 0) -> list[ReplayedPayment]:
    account = account_now(folder, "shop")
    candidate = replace(candidate_of(program, account), decode_past=in_full)
    with closing(schema.connect_for_reading(folder)) as connection:
        history = stored_history(connection, account.number, program, None)
        return [
            each
            for each in try_candidate(candidate, history, since)
            if isinstance(each, ReplayedPayment)
        ]


def stored_rule(account: Account, number: int) -> Rule:
    program = decode_program(account.files["rule", NAME].versions[number - 1].program)
    assert isinstance(program, Rule)
    return program


@pytest.mark.parametrize("number", [1, 2])
def test_a_version_decides_again_what_it_decided(folder: Path, number: int) -> None:
    rule = stored_rule(account_now(folder, "shop"), number)
    own = [
        each
        for each in replayed(folder, rule)
        if each.was is not None and each.was.rule is not None and each.was.rule.version == number
    ]
    assert len(own) > 100
    for each in own:
        assert isinstance(each.was, PastDecisionInFull)
        assert each.was.rule is not None
        assert (each.now.action, each.now.condition) == (each.was.action, each.was.rule.condition)
        assert tuple(each.values) == each.was.reads[len(each.was.reads) - len(rule.histories) :]


@pytest.mark.parametrize("number", [1, 2])
def test_the_evening_meets_most_conditions(folder: Path, number: int) -> None:
    rule = stored_rule(account_now(folder, "shop"), number)
    met = {each.now.condition for each in replayed(folder, rule)}
    assert len(met) >= len(rule.conditions) - 2


@pytest.mark.parametrize("number", [0, 1])
def test_a_scorecard_scores_again_what_it_scored(folder: Path, number: int) -> None:
    account = account_now(folder, "shop")
    if number:
        stored = account.files["scorecard", "bot_behaviour"].versions[number - 1]
        program = decode_program(stored.program)
    else:
        program = shipped_program()
    assert isinstance(program, Scorecard)
    own = [
        each
        for each in replayed(folder, program)
        if isinstance(each.was, PastDecisionInFull) and each.was.scorecard == number
    ]
    assert len(own) > 100
    for each in own:
        assert isinstance(each.was, PastDecisionInFull)
        assert (each.score, each.now.action) == (each.was.score, each.was.action)
        assert tuple(each.values) == each.was.reads[: len(program.histories)]


def test_a_replay_that_begins_later_decides_the_same(folder: Path) -> None:
    rule = stored_rule(account_now(folder, "shop"), 1)
    whole = replayed(folder, rule)
    middle = whole[len(whole) // 2].arrived
    assert [(each.id, each.now, each.values) for each in replayed(folder, rule, since=middle)] == [
        (each.id, each.now, each.values) for each in whole if each.arrived >= middle
    ]
