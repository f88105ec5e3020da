"""A share of denials passes, marked as such, and tells how many denials are wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.api.http.notices import notice_body
from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.programs.active import is_held_out
from tollkeeper.engine.registry.changes import AccountSettings, Holdout
from tollkeeper.tests.api.http.service import Service, errors, payment
from tollkeeper.tests.api.http.test_backtests import finished
from tollkeeper.tests.service.process import toll

pytestmark = pytest.mark.anyio

RULE = 'rule gate\n  condition large "Large" when amount > 100.00 then deny\n'
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}


@pytest.fixture
async def shop(service: Service) -> Service:
    """Every user's denials pass."""
    client = service.client
    stored = await client.post("/v1/rules/gate/versions?publish=true", content=RULE)
    assert stored.status_code == 201
    changed = await client.put("/v1/account", json={"account": {"holdout": {"percent": 100}}})
    assert changed.json()["account"]["holdout"] == {"percent": 100.0, "by": "user"}
    return service


async def create(service: Service, id_: str, **changed: Any) -> Any:
    body = payment(id=id_, **({"analyze": ASKED, "amount": 200} | changed))
    answer = await service.client.post("/v1/payments", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["payment"]


async def test_a_denial_that_is_held_out_is_answered_with_allow_in_the_form_of_any_other(
    shop: Service,
) -> None:
    created = await create(shop, "p-1")
    condition = {"id": "large", "name": "Large"}
    assert created["analyses"]["rule"] == {"name": "gate", "version": 1, "condition": condition}
    assert created["analyses"]["bot_behaviour"].keys() == {"action", "score"}
    assert created["analyses"]["bot_behaviour"]["action"] == "allow"
    assert created.keys() == {"id", "status", "analyses"}


async def test_it_is_marked_wherever_the_payment_is_read(shop: Service) -> None:
    await create(shop, "p-1")
    await create(shop, "p-2", amount=10, device={})
    client = shop.client
    (known, other) = [(await client.get(f"/v1/payments/p-{n}")).json()["payment"] for n in (1, 2)]
    assert known["held_out"] is True
    assert "held_out" not in other
    explained = (await client.get("/v1/payments/p-1/explanation")).json()["explanation"]
    assert (explained["held_out"], explained["repeated"]) == (True, True)
    decided = (await client.get("/v1/decisions?action=allow")).json()["decisions"]
    assert [(each["id"], each["held_out"]) for each in decided] == [("p-2", False), ("p-1", True)]
    found = (await client.get("/v1/payments?q=holdout:true")).json()["payments"]
    assert [(each["id"], each["held_out"]) for each in found] == [("p-1", True)]
    assert (await client.get("/v1/payments/count?holdout=false")).json()["count"] == 1
    assert (await client.get("/v1/payments/count?action=deny")).json()["count"] == 0
    scores = (await client.get("/v1/scores?holdout=true&by=action")).json()["scores"]
    assert [each["by"] for each in scores if each["payments"]] == [{"allow": 1}]
    (entry,) = await shop.engine.journal.of_record(1, Kind.PAYMENT, "p-1")
    notice = msgspec.json.decode(notice_body(shop.engine.folder_key, entry))
    assert notice["held_out"] is True
    assert notice["payment"]["analyses"] == known["analyses"]
    told = toll(shop.folder, "explain", "p-1", "--account", "shop")
    assert "deny by large" in told.stdout
    assert "held out: answered with allow" in told.stdout


async def test_what_was_held_out_tells_how_many_denials_are_wrong(shop: Service) -> None:
    for number, label in enumerate(("fraud", "legitimate", "legitimate", None)):
        await create(shop, f"p-{number}")
        if label:
            path = f"/v1/payments/p-{number}/labels/review"
            assert (await shop.client.put(path, json={"label": label})).status_code == 200
    await create(shop, "small", amount=10, device={})
    found = (await shop.client.get("/v1/figures/holdout")).json()["false_positives"]
    counts = {name: found[name] for name in ("people", "frauds", "unripe")}
    assert counts == {"people": 2, "frauds": 1, "unripe": 1}
    assert found["low"] < found["share"] == 2 / 3 < found["high"]
    other = await shop.client.get("/v1/figures/holdout?rule=another")
    assert other.json()["false_positives"]["share"] is None


async def test_the_command_tells_it_too(shop: Service) -> None:
    for number, label in enumerate(("fraud", "legitimate", "legitimate", "legitimate")):
        await create(shop, f"p-{number}")
        path = f"/v1/payments/p-{number}/labels/review"
        assert (await shop.client.put(path, json={"label": label})).status_code == 200
    found = (await shop.client.get("/v1/figures/holdout")).json()["false_positives"]
    command = ("holdout", "--account", "shop")
    assert toll(shop.folder, *command).stdout.splitlines() == [
        "100 % of denials pass, by user",
        "of those held out 3 were people's, 1 fraud; 0 may still get a label",
        f"75.0% of denials are wrong ({found['low']:.1%} to {found['high']:.1%})",
    ]
    (_, unknown) = toll(shop.folder, *command, "rule:another").stdout.splitlines()
    assert unknown == "nothing is known yet of those held out; 0 may still get a label"
    as_json = msgspec.json.decode(toll(shop.folder, *command, "--json").stdout)
    assert as_json["false_positives"] == found


async def test_a_backtest_says_what_is_decided_whoever_is_held_out(shop: Service) -> None:
    await create(shop, "p-1")
    report = (await finished(shop, {"text": RULE, "since": "1d"}))["report"]
    assert report["changed"]["payments"] == 0


async def test_a_payment_without_the_key_is_denied(shop: Service) -> None:
    created = await create(shop, "p-1", user={})
    assert created["analyses"]["bot_behaviour"]["action"] == "deny"


async def test_the_hold_out_is_guarded_with_the_thresholds(shop: Service) -> None:
    client = shop.client
    settings = {"account": {"approvals": {"thresholds": True}}}
    assert (await client.put("/v1/account", json=settings)).status_code == 200
    alone = await client.put("/v1/account", json={"account": {"holdout": {"percent": 0}}})
    assert (alone.status_code, errors(alone)) == (403, [("account.holdout", "forbidden")])


PERCENTS = st.integers(0, 10_000)


@given(st.text(min_size=1), PERCENTS, PERCENTS)
def test_a_user_who_is_held_out_always_stays_so_all_day_and_while_the_share_grows(
    user: str, one: int, other: int
) -> None:
    less, more = sorted((one, other))
    if held_out(user, less):
        assert held_out(user, more)
        assert held_out(user, less, arrived=DAY - 1)
    assert not held_out(user, 0)
    assert held_out(user, 10_000)


def test_as_many_users_are_held_out_as_the_share_says() -> None:
    assert 80 < sum(held_out(f"u-{number}", 100) for number in range(10_000)) < 120


@pytest.mark.parametrize("other", [{"arrived": DAY}, {"account": 2}, {"key": b"x" * 32}])
def test_who_passes_says_nothing_of_the_next_day_another_account_or_another_folder(
    other: dict[str, Any],
) -> None:
    passing = [f"u-{number}" for number in range(20_000) if held_out(f"u-{number}", 1_000)]
    assert 0.07 < sum(held_out(user, 1_000, **other) for user in passing) / len(passing) < 0.13


def held_out(
    user: str, percent: int, *, arrived: int = 0, account: int = 1, key: bytes = bytes(32)
) -> bool:
    settings = AccountSettings(holdout=Holdout(percent))
    active: Any = SimpleNamespace(account=SimpleNamespace(number=account, settings=settings))
    sent: Any = SimpleNamespace(user=SimpleNamespace(id=user))
    return is_held_out(active, sent, arrived, FolderKey(key))
