"""What may happen to a shop: payments in any order, updates, what is lost, erased and purged."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import strategies as st

from tollkeeper.engine.instants import HOUR, from_microseconds
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.publish.change_lists import PutEntries, RemoveEntries
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop

DAY = 24 * HOUR
RULE = """
rule checkout
  list cards: string
  condition every_aggregate
    when count(payments by user.id over 1h) > 99
      or count(payments by user.id over 3d) > 99
      or sum(payments.amount by user.id over 2h where status == "succeeded") > 99
      or distinct(payments.method.card.fingerprint by user.id over 30h) > 99
      or max(payments.amount by merchant.id over 50h where metadata["sku"] != "b") > 99
      or count(transactions by user.id over 30h where status == "declined") > 99
      or count(payments by user.id over 9h where decision.action == "deny") > 99
      or any(payments by user.id over 5h where device.ip_address in ["198.51.100.0/24"])
      or age(payments by user.id) > 99d
      or interval(payments by user.id) > 99d
      or age(payments by user.id where status == "declined") > 99d
      or interval(payments by method.card.fingerprint) > 99d
      or count(payments by user.id over 30h where method.card.fingerprint in @cards) > 99
      or sum(amount_in("USD") of payments by user.id over 9h) > 99
      or not first(payments by user.id, method.card.fingerprint)
      and count(payments by user.id over 5h where "a" in metadata["basket"]["skus"]) > 99
      or sum(count(metadata["basket"]["skus"]) of payments by user.id over 9h) > 99
      or decay(count of payments by user.id half life 1h where status == "declined") > 99
      or decay(earlier sum(amount) of payments by merchant.id half life 5h) > 999
      or streak(payments by user.id where status == "declined") > 99
      or streak(earlier payments by user.id where label is missing) > 99
      or count(payments by user.id over 9h where label == "fraud") > 99
      or distinct(label of payments by method.card.fingerprint over 3d) > 99
      or age(payments by method.card.fingerprint where label == "legitimate") > 99d
      or since(payments by user.id where method.card.fingerprint not in @cards) > 99d
    then deny
"""
USERS = ("u", "v")
CARDS = ("1111", "2222")

payments = st.fixed_dictionaries(
    {
        "user": st.none() | st.sampled_from(USERS),
        "card": st.none() | st.sampled_from(CARDS),
        "amount": st.integers(1, 9),
        "late": st.sampled_from([0, 0, 1, HOUR, 20 * HOUR]),
        "status": st.sampled_from(["initiated", "declined"]),
        "sku": st.none() | st.sampled_from("ab"),
    }
)
updates = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["succeeded", "declined", "failed"]),
    st.none() | st.sampled_from(CARDS),
)
labels = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["chargeback", "review", "import"]),
    st.none() | st.sampled_from(["fraud", "legitimate", "unsure"]),
)
settings = st.sampled_from(CARDS) | st.sampled_from(["0.2", "0.3"])
steps = st.lists(
    st.tuples(
        # Ties, then minutes, then days, so that windows end and what is old is purged.
        st.sampled_from([0, 0, 1, HOUR // 3, 11 * HOUR, 4 * DAY]),
        st.one_of(
            payments.map(lambda sent: ("pay", sent)),
            payments.map(lambda sent: ("pay", sent)),
            updates.map(lambda sent: ("update", sent)),
            updates.map(lambda sent: ("update", sent)),
            labels.map(lambda sent: ("label", sent)),
            payments.map(lambda sent: ("lose", sent)),
            updates.map(lambda sent: ("lose", sent)),
            st.sampled_from(USERS).map(lambda user: ("erase", user)),
            settings.map(lambda sent: ("configure", sent)),
            st.just(("purge", None)),
            st.just(("write", None)),
        ),
    ),
    max_size=14,
)


async def happen(shop: Shop, happened: list[tuple[int, tuple[str, Any]]]) -> None:
    ids: list[str] = []
    for number, (pause, (what, sent)) in enumerate(happened):
        shop.now += pause
        match what:
            case "pay":
                await pay(shop, f"p-{number}", sent)
                ids.append(f"p-{number}")
            case "update" if sent[0] < len(ids):
                await update(shop, ids[sent[0]], sent)
            case "label" if sent[0] < len(ids):
                await label(shop, ids[sent[0]], *sent[1:])
            case "lose":
                await lose(shop, ids, number, sent)
            case "erase":
                await erase_user(shop.engine, shop.account, "test", sent)
            case "configure":
                await configure(shop, sent)
            case "purge":
                await purge_account(shop.engine, shop.account)
            case "call":
                await sent(shop)
            case "write":
                await shop.engine.seen_times.write(shop.engine.journal.flush)


async def pay(shop: Shop, id_: str, sent: dict[str, Any]) -> None:
    card = {"network": "visa", "presence": "card_not_present", "bin": "40000000"}
    if sent["card"] is not None:
        card["last_four"] = sent["card"]
    body: dict[str, Any] = {
        "id": id_,
        "type": "purchase",
        "status": sent["status"],
        "currency": "BRL",
        "amount": sent["amount"],
        "timestamp": instant(shop.now - sent["late"]),
        "method": {"type": "card", "card": card},
        "merchant": {"id": "m"},
        "device": {"ip_address": f"198.51.{99 + sent['amount'] % 2}.7"},
        "analyze": {"bot_behaviour": True, "rule": {"name": NAME}},
    }
    if sent["status"] == "declined":
        body["transactions"] = [attempt("declined")]
    if sent["user"] is not None:
        body["user"] = {"id": sent["user"]}
    if sent["sku"] is not None:
        body["metadata"] = {"sku": sent["sku"], "basket": {"skus": [sent["sku"], "b"]}}
    await shop.create(body)


async def update(shop: Shop, id_: str, sent: tuple[int, str, str | None]) -> None:
    _, status, card = sent
    body: dict[str, Any] = {"status": status, "transactions": [attempt(status)]}
    if card is not None:
        network = {"network": "visa", "presence": "card_not_present"}
        body["method"] = {"card": {**network, "bin": "40000000", "last_four": card}}
    # One that was purged or is not there yet can't be updated.
    with suppress(AssertionError):
        await shop.update(id_, body)


async def label(shop: Shop, id_: str, source: Any, verdict: Any) -> None:
    # A payment that was purged can't be labelled.
    with suppress(NotFound):
        said = Label(source, verdict, shop.now, "test", "told by u")
        await set_label(shop.engine, shop.account, id_, said)


async def configure(shop: Shop, sent: str) -> None:
    """Put a card into the list or take it out, or set a rate."""
    listed = {"value": f"40000000-{sent}"}
    if sent not in CARDS:
        await shop.do(ChangeSettings("shop", {"rates": {"BRL": {"USD": sent}}}))
        return
    # A rule that has no list is not there to read it.
    with suppress(NotFound):
        if (await shop.do(RemoveEntries("shop", "cards", [listed["value"]]))).count == 0:
            await shop.do(PutEntries("shop", "cards", [listed]))


async def lose(shop: Shop, ids: list[str], number: int, sent: Any) -> None:
    """What the journal can't keep leaves nothing."""
    journal: Any = shop.engine.journal
    journal.append = _refuse
    try:
        with pytest.raises(Unavailable) if isinstance(sent, dict) else suppress(Unavailable):
            if isinstance(sent, dict):
                await pay(shop, f"p-{number}", sent)
            elif sent[0] < len(ids):
                await update(shop, ids[sent[0]], sent)
    finally:
        del journal.append


def _refuse(*_: Any) -> Any:
    raise Unavailable("the disk is full")


def attempt(status: str) -> dict[str, Any]:
    return {"status": status, "connector": {"id": "c", "response_code": "00"}}


def instant(time: int) -> str:
    return from_microseconds(time).isoformat()


def bare(**more: Any) -> dict[str, Any]:
    plain = {
        "user": "u",
        "card": "1111",
        "amount": 1,
        "late": 0,
        "status": "initiated",
        "sku": None,
    }
    return {**plain, **more}
