"""How much a key and an account may ask for."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from httpx import Response
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.api.http import authentication, sessions
from tollkeeper.api.http.errors import Problem
from tollkeeper.api.http.limits import (
    CHANGES_BURST_S,
    LONGEST_TURN_S,
    MAX_ADDRESSES,
    REPORTS_BURST_S,
    SIGN_INS_BURST_S,
    WORK_BURST_S,
    Limiter,
)
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.api.http.settings import Settings
from tollkeeper.engine.publish.accounts import RevokeKey
from tollkeeper.tests.api.http.service import Service, errors, payment

FEW = Settings(key_reports=2, account_reports=3, key_work=1, account_work=1, address_sign_ins=3)
ONE: Any = SimpleNamespace(id="one", account=1)
TWO: Any = SimpleNamespace(id="two", account=1)
CHANGING_NOTHING = {
    *("set_label", "remove_label", "set_labels", "add_note", "claim_payments", "reveal_field"),
    *("check_text", "start_backtest", "end_backtest", "start_suggestion", "end_suggestion"),
    *("begin_sign_in", "sign_in", "sign_out", "test_webhook", "redeliver_webhook"),
    "preview_import",
}
"""What is no question, and leaves all that is configured as it is."""

LOGIN = """
event login
  field user: string required
"""


@pytest.fixture(autouse=True)
def still_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which nothing is allowed again while a test takes its time."""
    for module in (authentication, sessions):
        monkeypatch.setattr(module, "monotonic", lambda: 100.0)


def told(answer: Response) -> dict[str, list[str]]:
    """What the headers say of a limit, each as often as it is there."""
    return {
        name: answer.headers.get_list(f"ratelimit-{name}")
        for name in ("limit", "remaining", "reset")
    }


@given(st.lists(st.floats(0, 3), max_size=60))
def test_a_key_never_sends_more_than_its_burst_and_its_rate(pauses: list[float]) -> None:
    limiter, now, sent = Limiter(FEW), 100.0, 0
    for pause in pauses:
        now += pause
        try:
            allowance = limiter.take(ONE, "report", now)
        except Problem:
            continue
        sent += 1
        assert 0 <= allowance.remaining < allowance.limit
    assert sent <= FEW.key_reports * (REPORTS_BURST_S + now - 100) + 1e-6


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 50)), max_size=60))
def test_reports_in_batches_are_as_many_as_one_by_one_but_for_the_last_batch(
    sent: list[tuple[float, int]],
) -> None:
    limiter, now, taken, last = Limiter(FEW), 100.0, 0, 0
    for pause, batch in sent:
        now += pause
        try:
            allowance = limiter.take(ONE, "report", now, batch)
        except Problem as problem:
            now += int(dict(problem.headers)[b"retry-after"])
            allowance = limiter.take(ONE, "report", now, batch)
        taken, last = taken + batch, batch
        assert 0 <= allowance.remaining < allowance.limit
    assert taken - last <= FEW.key_reports * (REPORTS_BURST_S + now - 100) + 1e-6


def test_whoever_waits_as_long_as_told_is_let_in() -> None:
    limiter, now = Limiter(FEW), 100.0
    for _ in range(50):
        try:
            limiter.take(ONE, "change", now)
        except Problem as problem:
            now += int(dict(problem.headers)[b"retry-after"])
            limiter.take(ONE, "change", now)
    assert now - 100 <= 50 - WORK_BURST_S + 1


def test_keys_of_one_account_share_its_bucket() -> None:
    limiter = Limiter(FEW)
    for _ in range(4):
        limiter.take(ONE, "report", 100.0)
    assert [limiter.take(TWO, "report", 100.0).remaining for _ in range(2)] == [1, 0]
    with pytest.raises(Problem) as refused:
        limiter.take(TWO, "report", 100.0)
    assert "this account may send 3 reports a second" in str(refused.value.violations)


@given(st.lists(st.floats(0, 1), max_size=120))
def test_an_account_s_changes_come_one_by_one_whatever_is_sent_at_once(
    pauses: list[float],
) -> None:
    limiter, now, begun = Limiter(Settings()), 100.0, []
    for pause in pauses:
        now += pause if pause > 0.5 else 0.0
        with suppress(Problem):
            wait = limiter.take(ONE, "change", now).wait
            assert wait <= LONGEST_TURN_S
            begun.append(now + wait)
    at_once = Settings().account_changes * CHANGES_BURST_S
    for first, last in combinations(range(len(begun)), 2):
        most = at_once + Settings().account_changes * (begun[last] - begun[first])
        assert last - first <= most + 1e-6
    assert limiter.take(ONE, "work", now).wait == 0
    assert limiter.take(ONE, "report", now).wait == 0


def test_every_operation_that_changes_what_is_configured_is_counted_so() -> None:
    asked = [each for each in ROUTES if not each.http_methods & {"GET"}]
    found = {
        demand: {each.operation_id for each in asked if each.opt["demand"] == demand}
        for demand in ("report", "work", "change")
    }
    assert found["report"] == {"create_payment", "update_payment", "submit_events"}
    assert found["work"] == CHANGING_NOTHING
    assert not any(each.opt["demand"] == "change" for each in ROUTES if each not in asked)


@pytest.mark.anyio
async def test_a_key_that_is_revoked_while_its_turn_comes_is_refused(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await service.key("shop", "lists:write")
    revoke = RevokeKey("shop", key[: len("toll_12345678")])
    waited: list[float] = []

    async def revoked(seconds: float) -> None:
        waited.append(seconds)
        await revoke.perform(service.engine, "test", lambda _share: None)

    monkeypatch.setattr(authentication, "asyncio", SimpleNamespace(sleep=revoked))
    found: list[int] = []
    async with service.client_with(key, Settings(account_changes=2)) as client:
        while not waited:
            answer = await client.put(f"/v1/lists/l{len(found)}", json={"type": "string"})
            found.append(answer.status_code)
    assert found == [*([201] * (len(found) - 1)), 401]
    assert (await service.client.get(f"/v1/lists/l{len(found) - 1}")).status_code == 404


@pytest.mark.anyio
async def test_what_comes_a_little_too_soon_is_answered_in_its_turn(service: Service) -> None:
    key = await service.key("shop", "admin")
    quick = Settings(account_changes=20)
    async with service.client_with(key, quick) as client:
        sent = [client.put("/v1/lists/late", json={"type": "string"}) for _ in range(130)]
        found = Counter([each.status_code for each in await asyncio.gather(*sent)])
    in_turn = quick.account_changes * (CHANGES_BURST_S + LONGEST_TURN_S)
    assert found[201] == 1
    assert found[200] + found[429] == 129
    assert found[200] + 1 == in_turn


@pytest.mark.anyio
async def test_one_request_too_many_gets_429_and_payments_go_on(service: Service) -> None:
    key = await service.key("shop", "admin")
    async with service.client_with(key, FEW) as client:
        left = [(await client.get("/v1/lists")).headers["ratelimit-remaining"] for _ in range(10)]
        refused = await client.get("/v1/lists")
        paid = await client.post("/v1/payments", json=payment())
    assert left == [str(count) for count in range(9, -1, -1)]
    assert refused.status_code == 429
    assert errors(refused) == [("authorization", "too_many_requests")]
    assert refused.headers["retry-after"] == "1"
    assert told(refused) == {"limit": ["10"], "remaining": ["0"], "reset": ["10"]}
    assert paid.status_code == 201
    assert (paid.headers["ratelimit-limit"], paid.headers["ratelimit-remaining"]) == ("4", "3")


@pytest.mark.anyio
async def test_each_event_of_a_batch_counts(service: Service) -> None:
    key, stored = await service.key("shop", "admin"), "/v1/event-types/login/versions?publish=true"
    assert (await service.client.post(stored, content=LOGIN)).status_code == 201
    batch = {"events": [{"type": "login", "data": {"user": "u"}}] * 3}
    async with service.client_with(key, FEW) as client:
        left = []
        for _ in range(2):
            answer = await client.post("/v1/events", json=batch)
            assert answer.status_code == 201
            left.append(answer.headers.get_list("ratelimit-remaining"))
        refused = await client.post("/v1/events", json=batch)
        one = await client.post("/v1/payments", json=payment())
    assert left == [["1"], ["0"]]
    assert (refused.status_code, one.status_code) == (429, 429)
    assert told(refused)["limit"] == told(one)["limit"] == ["4"]
    assert told(refused)["remaining"] == told(one)["remaining"] == ["0"]


@pytest.mark.anyio
async def test_a_change_too_many_is_told_of_the_changes_that_an_account_may_make(
    service: Service,
) -> None:
    key = await service.key("shop", "admin")
    async with service.client_with(key, Settings(account_changes=2)) as client:
        sent = [client.put("/v1/lists/late", json={"type": "string"}) for _ in range(20)]
        refused = [each for each in await asyncio.gather(*sent) if each.status_code == 429]
    assert refused
    for each in refused:
        assert told(each)["limit"] == ["10"]
        assert told(each)["remaining"] == ["0"]


@given(st.lists(st.floats(0, 40), max_size=60))
def test_an_address_never_tries_to_sign_in_more_often_than_its_burst_and_its_rate(
    pauses: list[float],
) -> None:
    limiter, now, tried = Limiter(FEW), 100.0, 0
    for pause in pauses:
        now += pause
        with suppress(Problem):
            limiter.take_sign_in("192.0.2.7", now)
            tried += 1
    assert tried <= FEW.address_sign_ins * (1 + (now - 100) / SIGN_INS_BURST_S) + 1e-6


def test_neighbours_by_ipv6_share_their_attempts_and_addresses_of_ipv4_do_not() -> None:
    limiter = Limiter(FEW)
    for _ in range(FEW.address_sign_ins):
        limiter.take_sign_in("2001:db8::1", 100.0)
        limiter.take_sign_in("::ffff:192.0.2.7", 100.0)
    limiter.take_sign_in("2001:db8:0:1::1", 100.0)
    limiter.take_sign_in("::ffff:192.0.2.8", 100.0)
    for address in ("2001:db8::2", "::ffff:192.0.2.7"):
        with pytest.raises(Problem):
            limiter.take_sign_in(address, 100.0)


def test_addresses_that_tried_longest_ago_make_room() -> None:
    limiter = Limiter(FEW)
    for number in range(MAX_ADDRESSES + 1):
        limiter.take_sign_in(f"host-{number}", 100.0)
    for _ in range(FEW.address_sign_ins):
        limiter.take_sign_in("host-0", 100.0)


@pytest.mark.anyio
async def test_whoever_tries_too_many_keys_is_told_to_wait(service: Service) -> None:
    async with service.client_with(None, FEW) as client:
        sent = {"session": {"key": "toll_none"}}
        tried = [await client.post("/v1/sessions", json=sent) for _ in range(4)]
        assert [each.status_code for each in tried] == [401, 401, 401, 429]
        begun = await client.post("/v1/sign-ins", json={"sign_in": {"account": "shop"}})
    assert begun.status_code == 429
    assert "try to sign in 3 times a minute" in begun.text
