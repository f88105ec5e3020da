"""From an alert, or from what stands out, to what blocks it until a time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.api.console.client import PublicClient, Query
from tollkeeper.tests.api.console.conftest import Shop, open_shop
from tollkeeper.tests.api.console.test_two_people import form_of
from tollkeeper.tests.api.http.service import payment

pytestmark = pytest.mark.anyio

GUARD = """rule guard
  list blocked: string
  condition known when device.fingerprint.id in @blocked then deny
  otherwise allow
"""
ADDRESSES = """  list addresses: ip
  condition near when device.ip_address in @addresses then deny
  otherwise"""
WATCH = """event payment
  metric seen = count(payments by merchant.id over 1h)
  monitor burst "Many payments" when seen >= 5 by merchant.id
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "guard"}}
BOT = {"ip_address": "198.51.100.7", "fingerprint": {"id": "d-bot-7", "provider": "basic"}}


@pytest.fixture(scope="module")
async def under_attack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Shared by tests that leave it as it is."""
    async with open_attacked(tmp_path_factory.mktemp("attacked")) as shop:
        yield shop


@pytest.fixture
async def attacked(tmp_path: Path) -> AsyncIterator[Shop]:
    """For a test that changes it."""
    async with open_attacked(tmp_path) as shop:
        yield shop


@asynccontextmanager
async def open_attacked(folder: Path) -> AsyncIterator[Shop]:
    """A shop in which one device pays again and again, and a monitor has seen it."""
    async with open_shop(folder) as shop:
        api = shop.service.client
        for path, text in (("rules/guard", GUARD), ("event-types/payment", WATCH)):
            stored = await api.post(f"/v1/{path}/versions?publish=true", content=text)
            assert stored.status_code == 201, stored.text
        for number in range(12):
            body = payment(
                id=f"bot-{number}", device=BOT, merchant={"id": "m-9"}, analyze=ASKED, amount=5
            )
            assert (await api.post("/v1/payments", json=body)).status_code == 201
        yield shop


async def alert_of(shop: Shop) -> str:
    (alert,) = (await shop.service.client.get("/v1/alerts?state=open")).json()["alerts"]
    id_: str = alert["id"]
    return id_


async def test_an_alert_shows_what_its_monitor_asks_and_offers_its_title_as_the_reason(
    under_attack: Shop,
) -> None:
    page = (await under_attack.browser.get(f"/console/alerts/{await alert_of(under_attack)}")).text
    shown = re.search(r'<pre class="rule"[^>]*><code>(.*?)</code>', page, re.DOTALL)
    assert shown is not None
    assert unescape(shown[1]).split("\n\n") == [
        "metric seen = count(payments by merchant.id over 1h)",
        'monitor burst "Many payments" when seen >= 5 by merchant.id',
    ]
    assert re.search(r'<input name="reason"[^>]* value="Many payments"', page)


async def test_an_alert_is_acknowledged_closed_and_opened_again(attacked: Shop) -> None:
    id_ = await alert_of(attacked)
    api = attacked.service.client
    for state in ("acknowledged", "closed", "open"):
        body = {"alert": {"state": state, "note": "a sale"}}
        marked = (await api.put(f"/v1/alerts/{id_}", json=body)).json()["alert"]["mark"]
        assert (marked["state"], marked["note"]) == (state, "a sale")
        found = (await api.get(f"/v1/alerts?state={state}")).json()["alerts"]
        assert [each["id"] for each in found] == [id_]
    assert (await api.get("/v1/alerts?state=closed")).json()["alerts"] == []
    actions = [each["action"] for each in (await api.get("/v1/audit")).json()["audit"][:3]]
    assert actions == ["alert_marked"] * 3


async def test_an_alert_is_not_marked_over_what_another_marked_meanwhile(attacked: Shop) -> None:
    address = f"/console/alerts/{await alert_of(attacked)}"
    form = form_of((await attacked.browser.get(address)).text, address)
    for note, status in (("ana looks", 303), ("rui looks", 409)):
        sent = {**form, "state": "acknowledged", "note": note}
        marked = await attacked.browser.post(address, data=sent)
        assert marked.status_code == status, marked.text
    assert "somebody changed this after the page was made" in marked.text
    assert "ana looks" in (await attacked.browser.get(address)).text


async def test_an_alert_that_there_is_not_is_not_found(under_attack: Shop) -> None:
    for id_ in ("0", "f" * 32, "é"):
        assert (await under_attack.service.client.get(f"/v1/alerts/{id_}")).status_code == 404


async def test_what_the_payments_share_is_suggested_with_what_blocking_it_would_do(
    under_attack: Shop,
) -> None:
    page = (await under_attack.browser.get(f"/console/alerts/{await alert_of(under_attack)}")).text
    row = re.search(r"<tr[ >](?:(?!</tr>).)*Device(?:(?!</tr>).)*</tr>", page, re.DOTALL)
    assert row is not None, page
    assert 'name="pick" value="device:bot-11"' in row[0]
    assert '<option value="blocked"' in row[0]
    # 12 payments in the hour and in the day, none denied yet, none paid.
    numbers = re.findall(r'<td class="number"[^>]*>(?:<a [^>]*>)?([\d.]+)<', row[0])
    assert numbers == ["12", "0.0", "12", "0", "0"]
    assert "d-bot-7" not in page
    assert "198.51.100.7" not in page


async def test_a_condition_is_drafted_in_the_rule_that_decided_the_payments(
    under_attack: Shop,
) -> None:
    live = (await under_attack.service.client.get("/v1/rules")).json()["rules"]
    assert [each["name"] for each in live if each["active"]] == ["gate", "guard"]
    page = (await under_attack.browser.get(f"/console/alerts/{await alert_of(under_attack)}")).text
    drafts = re.findall(r'href="([^"]+)">Draft a condition', page)
    assert "/console/rules/guard/edit?by=merchant&amp;like=bot-11" in drafts


async def test_a_condition_is_drafted_though_its_payment_is_removed_meanwhile(
    under_attack: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = PublicClient.aside

    async def find_gone(client: PublicClient, path: str, query: Query) -> Any:
        return await read(client, path.replace("bot-11", "gone"), query)

    monkeypatch.setattr(PublicClient, "aside", find_gone)
    answer = await under_attack.browser.get(f"/console/alerts/{await alert_of(under_attack)}")
    assert answer.status_code == 200
    drafts = re.findall(r'href="([^"]+)">Draft a condition', answer.text)
    assert "/console/rules/gate/edit?by=merchant&amp;like=bot-11" in drafts


@pytest.mark.parametrize(
    ("by", "clear", "shown"),
    [
        ("user.email", "ana@shop.example", "a***@shop.example"),
        ("device.ip_address", "198.51.100.7", "198.51.*.*"),
        ("merchant.id", "m-9", "m-9"),
    ],
)
async def test_addresses_that_an_alert_is_of_are_masked(
    tmp_path: Path, by: str, clear: str, shown: str
) -> None:
    watch = WATCH.replace("merchant.id", by)
    async with open_shop(tmp_path) as shop:
        api = shop.service.client
        stored = await api.post("/v1/event-types/payment/versions?publish=true", content=watch)
        assert stored.status_code == 201, stored.text
        for number in range(5):
            body = payment(
                id=f"bot-{number}",
                device=BOT,
                merchant={"id": "m-9"},
                user={"id": "u-1", "email": "ana@shop.example"},
            )
            assert (await api.post("/v1/payments", json=body)).status_code == 201
        for path in ("/console/alerts", f"/console/alerts/{await alert_of(shop)}"):
            page = (await shop.browser.get(path)).text
            assert shown in page, path
            assert (clear in page) == (clear == shown), path


async def test_what_the_alert_is_of_is_suggested_first(under_attack: Shop) -> None:
    page = (await under_attack.browser.get(f"/console/alerts/{await alert_of(under_attack)}")).text
    rows = re.findall(r"<tr[ >].*?</tr>", page.partition('name="alert"')[2], re.DOTALL)
    assert "m-9" in rows[1]


async def test_an_alert_shows_how_its_hour_scored_beside_the_weeks_before(
    under_attack: Shop,
) -> None:
    page = (await under_attack.browser.get(f"/console/alerts/{await alert_of(under_attack)}")).text
    figure = page.partition("<figure>")[2].partition("</figure>")[0]
    counts = re.findall(r'<a href="(/console/payments\?q=score[^"]+)">(\d+)</a>', figure)
    assert len(counts) == 10
    # The alert is of the fifth payment of its merchant; four of the shop's came before.
    assert sum(int(number) for _, number in counts) == 8
    for link, number in counts:
        if number != "0":
            found = (await under_attack.browser.get(link.replace("&amp;", "&"))).text
            assert re.search(rf'id="count" role="status">{number} payments?<', found), link


async def test_a_value_that_is_picked_is_blocked_until_a_time_and_the_alert_acknowledged(
    attacked: Shop,
) -> None:
    id_, api = await alert_of(attacked), attacked.service.client
    sent = {"alert": id_, "pick": "device:bot-11", "list_device": "blocked", "span": "6h"}
    done = await attacked.browser.post("/console/contain", data={**sent, "reason": "testing"})
    assert done.status_code == 303, done.text
    (entry,) = (await api.get("/v1/lists/blocked/entries")).json()["entries"]
    assert (entry["value"], entry["note"]) == ("d-bot-7", "testing")
    assert entry["expires_at"]
    body = payment(id="again", device=BOT, analyze=ASKED, amount=5)
    made = (await api.post("/v1/payments", json=body)).json()["payment"]["analyses"]
    assert made["bot_behaviour"]["action"] == "deny"
    shown = (await attacked.browser.get(done.headers["location"])).text
    assert "1 blocked until" in shown
    alert = (await api.get(f"/v1/alerts/{id_}")).json()["alert"]
    assert alert["mark"]["state"] == "acknowledged"


async def test_a_block_waits_for_another_person_where_the_account_asks_for_it(
    attacked: Shop,
) -> None:
    id_, api = await alert_of(attacked), attacked.service.client
    assert "another&#x27;s approval" not in (await attacked.browser.get("/console/contain")).text
    await api.put("/v1/account", json={"account": {"approvals": {"lists": True}}})
    assert "another&#x27;s approval" in (await attacked.browser.get("/console/contain")).text
    sent = {"alert": id_, "pick": "device:bot-11", "list_device": "blocked", "span": "6h"}
    done = await attacked.browser.post("/console/contain", data={**sent, "reason": "testing"})
    assert done.headers["location"] == "/console/changes?proposed=1", done.text
    value = {"put": "device:blocked"}
    done = await attacked.browser.post("/console/payments/bot-11/list", data=value)
    assert done.headers["location"] == "/console/changes?proposed=2", done.text
    assert (await api.get("/v1/lists/blocked/entries")).json()["entries"] == []
    (_, proposal) = (await api.get("/v1/proposals")).json()["proposals"]
    (entry,) = proposal["entries"]["entries"]
    assert (entry["value"], entry["note"]) == ("d-bot-7", "testing")
    alert = (await api.get(f"/v1/alerts/{id_}")).json()["alert"]
    assert alert["mark"]["state"] == "open"


async def test_values_for_several_lists_become_proposals_that_are_all_named(
    attacked: Shop,
) -> None:
    api = attacked.service.client
    text = GUARD.replace("  otherwise", ADDRESSES)
    stored = await api.post("/v1/rules/guard/versions?publish=true", content=text)
    assert stored.status_code == 201, stored.text
    await api.put("/v1/account", json={"account": {"approvals": {"lists": True}}})
    lists = {"list_device": "blocked", "list_ip": "addresses"}
    sent = {**lists, "pick": ["device:bot-11", "ip:bot-11"], "span": "6h", "reason": "testing"}
    done = await attacked.browser.post("/console/contain", data=sent)
    assert done.status_code == 303, done.text
    shown = (await attacked.browser.get(done.headers["location"])).text
    assert "Proposals 1, 2 wait for another person." in shown
    proposals = (await api.get("/v1/proposals")).json()["proposals"]
    assert {each["name"] for each in proposals} == {"blocked", "addresses"}


async def test_a_form_in_which_nothing_is_chosen_blocks_nothing_and_says_so(
    under_attack: Shop,
) -> None:
    id_ = await alert_of(under_attack)
    sent = {"alert": id_, "list_device": "blocked", "span": "6h"}
    done = await under_attack.browser.post("/console/contain", data=sent)
    shown = (await under_attack.browser.get(done.headers["location"])).text
    assert "Nothing was chosen" in shown
    alert = (await under_attack.service.client.get(f"/v1/alerts/{id_}")).json()["alert"]
    assert alert["mark"]["state"] == "open"


async def test_what_stands_out_is_contained_without_an_alert(attacked: Shop) -> None:
    page = (await attacked.browser.get("/console/contain")).text
    assert 'name="pick" value="device:bot-11"' in page
    sent = {"pick": "device:bot-11", "list_device": "blocked", "span": "1h"}
    done = await attacked.browser.post("/console/contain", data=sent)
    assert done.headers["location"].startswith("/console/contain?contained=1")


async def test_what_no_list_is_asked_for_becomes_a_condition_in_the_editor(
    under_attack: Shop,
) -> None:
    page = (await under_attack.browser.get("/console/contain")).text
    draft = re.search(r'href="(/console/rules/[^"]+by=merchant[^"]+)"', page)
    assert draft is not None
    editor = (await under_attack.browser.get(draft[1].replace("&amp;", "&"))).text
    assert "condition contain_merchant" in editor
    assert "when merchant.id == &quot;m-9&quot;" in editor or 'merchant.id == "m-9"' in editor


async def test_a_form_with_another_value_blocks_nothing(under_attack: Shop) -> None:
    for wrong in ({"pick": "device"}, {"span": "1y"}, {"pick": "colour:bot-11"}):
        sent = {"pick": "device:bot-11", "list_device": "blocked", "span": "1h", **wrong}
        answer = await under_attack.browser.post("/console/contain", data=sent)
        assert answer.status_code in (404, 422), wrong
    entries = await under_attack.service.client.get("/v1/lists/blocked/entries")
    assert entries.json()["entries"] == []


async def test_a_list_of_those_who_are_let_through_is_not_offered_to_block_with(
    attacked: Shop,
) -> None:
    api = attacked.service.client
    trusting = "  list trusted: string\n  condition known when user.id in @trusted then allow\n"
    text = GUARD.replace("  condition", trusting + "  condition").replace(
        "known when dev", "k when dev"
    )
    stored = await api.post("/v1/rules/guard/versions?publish=true", content=text)
    assert stored.status_code == 201, stored.text
    for number in range(12):
        body = payment(id=f"u-{number}", user={"id": "u-9"}, analyze=ASKED)
        assert (await api.post("/v1/payments", json=body)).status_code == 201
    page = (await attacked.browser.get("/console/contain")).text
    assert "<small>User</small>" in page
    assert '<option value="blocked"' in page
    assert '<option value="trusted"' not in page


@pytest.mark.parametrize("device", ['d"7', "d\\7", "d 7"])
async def test_a_value_with_any_character_is_weighed_and_blocked(
    attacked: Shop, device: str
) -> None:
    api = attacked.service.client
    odd = {"ip_address": "198.51.100.8", "fingerprint": {"id": device, "provider": "basic"}}
    for number in range(30):
        body = payment(id=f"odd-{number}", device=odd, analyze=ASKED, amount=5)
        assert (await api.post("/v1/payments", json=body)).status_code == 201
    answer = await attacked.browser.get("/console/contain")
    assert answer.status_code == 200, answer.text
    assert 'name="pick" value="device:odd-29"' in answer.text
    assert (await attacked.browser.get("/console")).status_code == 200
    sent = {"pick": "device:odd-29", "list_device": "blocked", "span": "6h"}
    done = await attacked.browser.post("/console/contain", data=sent)
    assert done.status_code == 303, done.text
    (entry,) = (await api.get("/v1/lists/blocked/entries")).json()["entries"]
    assert entry["value"] == device


async def test_what_is_blocked_already_is_not_offered_again(attacked: Shop) -> None:
    id_ = await alert_of(attacked)
    before = (await attacked.browser.get(f"/console/alerts/{id_}")).text
    assert 'value="device:' in before
    await attacked.browser.post("/console/lists/blocked/entries", data={"values": "d-bot-7"})
    after = (await attacked.browser.get(f"/console/alerts/{id_}")).text
    assert 'value="device:' not in after
    assert 'blocked</span> <a href="/console/lists/blocked">' in after
    assert "d-bot-7" not in after


async def test_a_value_that_mostly_paid_is_offered_but_not_chosen(attacked: Shop) -> None:
    box = re.compile(r'value="device:bot-11"(?P<more>[^>]*)>')
    succeeded = {
        "id": "t-1",
        "status": "succeeded",
        "connector": {"id": "acquirer", "response_code": "00"},
    }
    update = {"payment": {"status": "succeeded", "transactions": [succeeded]}}
    for number in range(7):
        page = (await attacked.browser.get("/console/contain")).text
        assert "checked" in box.search(page)["more"], number  # type: ignore[index]
        paid = await attacked.service.client.patch(f"/v1/payments/bot-{number}", json=update)
        assert paid.status_code == 200, paid.text
    page = (await attacked.browser.get("/console/contain")).text
    assert "checked" not in box.search(page)["more"]  # type: ignore[index]


@pytest.mark.parametrize("lasts", [None, "until a time"])
async def test_now_tells_of_an_attack_that_is_contained_without_an_alarm(
    attacked: Shop, lasts: str | None
) -> None:
    api, blocked = attacked.service.client, "/v1/lists/blocked/entries"
    more = """  list trusted: string
  condition friend when device.fingerprint.id in @trusted and amount < 1 then allow
  condition dear when amount > 100 then deny
  otherwise allow"""
    text = GUARD.replace("  otherwise allow", more)
    stored = await api.post("/v1/rules/guard/versions?publish=true", content=text)
    assert stored.status_code == 201, stored.text
    for number in range(60):
        card = {
            "network": "visa",
            "presence": "card_not_present",
            "bin": f"4{number:07}",
            "last_four": f"{number:04}",
        }
        method = {"type": "credit_card", "card": card}
        user = {"id": f"u-{number}", "email": f"u{number}@shop.example"}
        dear = {
            "device": BOT,
            "user": user,
            "merchant": {"id": "m-9"},
            "analyze": ASKED,
            "amount": 500,
        }
        body = payment(id=f"dear-{number}", method=method, **dear)
        assert (await api.post("/v1/payments", json=body)).status_code == 201
    # A list by which nobody is refused contains nothing.
    trusted = {"entries": [{"value": "d-bot-7"}]}
    assert (await api.put("/v1/lists/trusted/entries", json=trusted)).status_code == 200
    loud = (await attacked.browser.get("/console")).text
    assert 'class="notice alarm"' in loud
    assert ">Contain</a>" in loud
    expires = {} if lasts is None else {"expires_at": "2999-01-01T00:00:00Z"}
    entry = {"value": "d-bot-7", **expires}
    assert (await api.put(blocked, json={"entries": [entry]})).status_code == 200
    quiet = (await attacked.browser.get("/console")).text
    assert 'class="notice alarm"' not in quiet
    said = "Blocked for good" if lasts is None else "Blocked until 01 Jan 00:00"
    assert f'{said} by the list <a href="/console/lists/blocked">' in quiet
    assert "d-bot-7" not in quiet


async def test_a_block_that_has_expired_is_offered_again(attacked: Shop) -> None:
    entry = {"value": "d-bot-7", "expires_at": "2020-01-01T00:00:00Z"}
    put = await attacked.service.client.put("/v1/lists/blocked/entries", json={"entries": [entry]})
    assert put.status_code == 200, put.text
    page = (await attacked.browser.get("/console/contain")).text
    assert 'name="pick" value="device:bot-11"' in page


async def test_each_entry_of_a_list_says_how_many_payments_had_it_and_leads_to_them(
    attacked: Shop,
) -> None:
    page = "/console/lists/blocked"
    await attacked.browser.post(f"{page}/entries", data={"values": "d-bot-7\nd-never"})
    plain = (await attacked.browser.get(page)).text
    found = (await attacked.browser.post(f"{page}/find", data={"value": "d-never"})).text
    assert "<code>d-never</code>" in found
    assert f'href="{page}?hits=1"' in found
    assert "<code>d-bot-7</code>" not in found
    none = (await attacked.browser.post(f"{page}/find", data={"value": "d-other"})).text
    assert "No entry holds this value." in none
    assert f'href="{page}?hits=1"' in plain
    counted = (await attacked.browser.get(f"{page}?hits=1")).text
    assert "none in 90 days" in counted
    (link, number), *more = re.findall(r'href="(/console/payments\?of=[^"]+)">(\d+)<', counted)
    assert not more
    assert "d-bot-7" not in link
    behind = (await attacked.browser.get(unescape(link))).text
    assert f">{number} payments<" in behind


async def test_a_file_of_entries_is_seen_through_before_it_is_added(attacked: Shop) -> None:
    lists = "/console/lists/blocked"
    kept = await attacked.browser.post(f"{lists}/entries", data={"values": "d-old"})
    assert kept.status_code == 303
    bad = {"csv": "value,expires_at\nd-1,tomorrow\nd-2,\n"}
    seen = await attacked.browser.post(f"{lists}/preview", data=bad)
    assert "line 2" in seen.text
    assert f'action="{lists}/import"' not in seen.text
    refused = await attacked.browser.post(f"{lists}/import", data=bad)
    assert refused.status_code == 422
    good = {"csv": "value,note\nd-bot-7,card testing\nd-old,seen again\nd-9,<b>\n"}
    seen = await attacked.browser.post(f"{lists}/preview", data=good)
    assert "2 new, 1 there already and renewed, 0 lines" in seen.text
    assert "12 payments had one of the first 2 values (Device): 0 were denied" in seen.text
    assert "<b>" not in seen.text
    entries = f"/v1{lists.removeprefix('/console')}/entries"
    listed = (await attacked.service.client.get(entries)).json()["entries"]
    assert [each["value"] for each in listed] == ["d-old"]
    added = await attacked.browser.post(f"{lists}/import", data=good)
    assert added.headers["location"] == f"{lists}?added=3"
    listed = (await attacked.service.client.get(entries)).json()["entries"]
    assert [(each["value"], each["note"]) for each in listed] == [
        ("d-9", "<b>"),
        ("d-bot-7", "card testing"),
        ("d-old", "seen again"),
    ]
    again = await attacked.browser.get(f"{lists}/export.csv")
    back = await attacked.browser.post(f"{lists}/preview", data={"csv": again.text})
    assert "0 new, 3 there already" in back.text
