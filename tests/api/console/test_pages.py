"""The console as HTML: every page, who may see it, what it shows and what it hides."""

from __future__ import annotations

import json
import re
from asyncio import sleep
from collections.abc import AsyncIterator, Iterable
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from tollkeeper.api.console.answers import POLICY, csv_file
from tollkeeper.api.console.client import RefusalError
from tollkeeper.api.console.page import NAVIGATION
from tollkeeper.api.console.pages.payments import EXAMPLE_SEARCHES, SEARCH_MEMBERS
from tollkeeper.api.console.words import languages
from tollkeeper.engine.keep_accesses import write_accesses
from tollkeeper.engine.publish.end_publications import end_due
from tollkeeper.engine.publish.sign_in import MakeLink
from tollkeeper.tests.api.console.conftest import HOSTILE, RULE, Shop, sign_in
from tollkeeper.tests.api.http.service import open_service, payment

pytestmark = pytest.mark.anyio

MORE = (
    "/console/payments?q=action:deny",
    "/console/payments/order-1",
    "/console/rules/gate",
    "/console/rules/gate/edit",
    "/console/new-rule",
    "/console/lists/blocked",
    "/console/settings/users",
    "/console/settings/keys",
    "/console/contain",
    "/console/came-back",
)
ADDRESSES = (*(address for _, address, _ in NAVIGATION), *MORE)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_every_page_comes_under_the_strict_policy_and_is_kept_by_nobody(
    shop: Shop, address: str
) -> None:
    answer = await shop.browser.get(address)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("address", ADDRESSES)
async def test_no_page_holds_a_script_a_style_or_an_attribute_that_the_policy_would_refuse(
    shop: Shop, address: str
) -> None:
    text = (await shop.browser.get(address)).text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|hx-on|js:", text)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_what_came_from_outside_is_text_on_every_page(shop: Shop, address: str) -> None:
    assert HOSTILE not in (await shop.browser.get(address)).text


async def test_a_payment_with_a_hostile_name_has_its_page(shop: Shop) -> None:
    answer = await shop.browser.get(f"/console/payments/{quote(HOSTILE, safe='')}")
    assert answer.status_code == 200
    assert HOSTILE not in answer.text


async def test_a_payment_of_what_is_required_alone_is_on_the_pages_and_in_the_file(
    own_shop: Shop,
) -> None:
    least = {"id": "least", "type": "verify", "currency": "EUR"}
    body = {"payment": {**least, "method": {"type": "card"}, "merchant": {"id": "m-9"}}}
    assert (await own_shop.service.client.post("/v1/payments", json=body)).status_code == 201
    for address in ("/console/payments", "/console/payments/least", "/console/payments?q=id:least"):
        answer = await own_shop.browser.get(address)
        assert answer.status_code == 200
        assert "least" in answer.text
    file = (await own_shop.browser.get("/console/payments/export.csv?q=id:least")).text
    _, line = file.splitlines()
    assert re.fullmatch(r"least,[^,]+,,,,EUR,,initiated,", line)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_nobody_sees_a_page_who_is_not_signed_in(shop: Shop, address: str) -> None:
    async with shop.service.client_with(None) as stranger:
        answer = await stranger.get(address)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/console/sign-in?back=")


async def test_cards_addresses_and_mail_stay_out_of_the_source_until_they_are_asked_for(
    shop: Shop,
) -> None:
    for address in ("/console/payments", "/console/payments/order-1", "/console"):
        text = (await shop.browser.get(address)).text
        for secret in ("41111111-1111", "ana@shop.example"):
            assert secret not in text, address


async def test_each_value_of_a_person_that_is_shown_stands_in_the_log_by_itself(
    own_shop: Shop,
) -> None:
    shown = {"card": "41111111-1111", "email": "ana@shop.example"}
    for field, value in shown.items():
        page = await own_shop.browser.post(
            "/console/payments/order-1/reveal", data={"field": field}
        )
        assert value in page.text
        assert page.headers["cache-control"] == "no-store"
        assert not [each for each in shown.values() if each != value and each in page.text]
        assert value not in page.text.partition('class="calls"')[2]
    for field, status in (("order", 404), ("name", 422)):
        sent = {"reveal": {"field": field}}
        refused = await own_shop.service.client.post("/v1/payments/order-1/reveals", json=sent)
        assert refused.status_code == status
    log = (await own_shop.service.client.get("/v1/audit")).json()["audit"]
    revealed = [each for each in log if each["action"] == "personal_data_revealed"]
    assert [(each["subject"], each["detail"]) for each in revealed] == [
        ("payment order-1", {"field": "email"}),
        ("payment order-1", {"field": "card"}),
    ]
    assert {each["by"] for each in revealed} == {own_shop.key[:13]}
    changes = (await own_shop.browser.get("/console/changes?kind=access")).text
    assert "personal data revealed" in changes
    assert "ana@shop.example" not in changes


async def test_a_note_is_there_for_whoever_looks_next_without_a_verdict(own_shop: Shop) -> None:
    address = "/console/payments/order-1"
    sent = {"text": f"called\r\n{HOSTILE}"}
    assert (await own_shop.browser.post(f"{address}/notes", data=sent)).status_code == 303
    page = (await own_shop.browser.get(address)).text
    assert "<p>called\n&lt;script&gt;" in page
    api = own_shop.service.client
    notes = (await api.get("/v1/payments/order-1/notes")).json()["notes"]
    assert [(each["text"], each["by"]) for each in notes] == [
        (f"called\n{HOSTILE}", own_shop.key[:13])
    ]
    assert (await api.get("/v1/payments/order-1/labels")).json()["labels"] == []
    for text in ("", " ", "\x00", "a" * 1001):
        body = {"note": {"text": text}}
        assert (await api.post("/v1/payments/order-1/notes", json=body)).status_code == 422
    for id_ in ("order-9", "order-1/notes"):
        path = f"/v1/payments/{quote(id_, safe='')}/notes"
        assert (await api.get(path)).status_code == 404
        assert (await api.post(path, json={"note": {"text": "a"}})).status_code == 404


def words_of(texts: Iterable[str]) -> set[str]:
    return set(re.findall(r"[a-zà-ú]{4,}", " ".join(texts).lower()))


ENGLISH, PORTUGUESE = (words_of(languages()[name].texts.values()) for name in ("en", "pt-BR"))


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_portuguese_page_has_no_english_word_but_those_that_its_calls_answered(
    shop: Shop, address: str
) -> None:
    page = await shop.browser.get(address, headers={"accept-language": "pt-BR"})
    shown, _, calls = page.text.partition('class="calls"')
    asked = re.findall(r"https://YOUR-HOST([^\s&]+(?:&amp;[^\s&#]+)*)", calls)
    answered = [(await shop.service.client.get(unescape(each))).text for each in asked]
    given = words_of([*answered, *ADDRESSES, *EXAMPLE_SEARCHES, *SEARCH_MEMBERS])
    texts = re.sub(r"<(pre|code|option|textarea)\b.*?</\1>", "", shown, flags=re.DOTALL)
    found = words_of(unescape(each) for each in re.findall(r">([^<>]+)<", texts))
    assert (found & ENGLISH) - PORTUGUESE - given == set()


async def test_figures_have_the_point_of_the_pages_language_and_of_files_and_searches_their_own(
    own_shop: Shop,
) -> None:
    body = payment(id="dear", amount=1234.5, currency="BRL", analyze={"bot_behaviour": True})
    answer = await own_shop.service.client.post("/v1/payments", json=body)
    score = f"{answer.json()['payment']['analyses']['bot_behaviour']['score']:.2f}"
    for language, amount, point in (("en", "1\u202f234.50", "."), ("pt-BR", "1.234,50", ",")):
        headers = {"accept-language": language}

        async def read(address: str, headers: dict[str, str] = headers) -> str:
            return (await own_shop.browser.get(f"/console/{address}", headers=headers)).text

        listed = await read("payments?q=id:dear")
        assert f'"number">{amount}\u00a0BRL<' in listed
        assert f'"number">{score.replace(".", point)}<' in listed
        assert f",1234.5,BRL,{score}," in await read("payments/export.csv?q=id:dear")
        thresholds = await read("score")
        assert f">0{point}85<" in thresholds
        assert "score_from:0.85" in thresholds


async def test_amounts_of_a_currency_without_a_minor_unit_have_no_decimals(own_shop: Shop) -> None:
    for number, amount in enumerate((1500, 1500.5)):
        body = payment(id=f"yen-{number}", amount=amount, currency="JPY")
        assert (await own_shop.service.client.post("/v1/payments", json=body)).status_code == 201
    listed = (await own_shop.browser.get("/console/payments?q=id:yen-*")).text
    amounts = re.findall(r'"number">([^<]+)\u00a0JPY<', listed)
    assert sorted(amounts) == ["1\u202f500", "1\u202f500.50"]


async def test_who_judged_what_is_said_in_the_pages_language(own_shop: Shop) -> None:
    path = "/v1/payments/order-1/labels/early_warning"
    assert (await own_shop.service.client.put(path, json={"label": "fraud"})).status_code == 200
    portuguese = {"accept-language": "pt-BR"}
    shown = (await own_shop.browser.get("/console/payments/order-1", headers=portuguese)).text
    assert "Fraude, segundo o alerta antecipado" in shown
    log = (await own_shop.browser.get("/console/changes", headers=portuguese)).text
    assert "versão guardada" in log
    assert "lista criada" in log


async def test_the_rules_own_text_is_lit_with_the_payments_values(shop: Shop) -> None:
    text = (await shop.browser.get("/console/payments/order-1")).text
    lit = re.search(
        r'<span class="lit true">amount &gt; 100.00<span class="given"[^>]*> ([\d.]+)<', text
    )
    assert lit is not None
    assert lit[1] == "200.00"
    assert '<span class="block met">' in text


WATCHED = """rule watched "What tells of a person"
  list devices: string
  condition known "A device, an address, a card, an order, a person"
    when device.fingerprint.id in @devices or device.ip_address in ["192.0.2.1"]
      or method.card.fingerprint in @devices or method.card.last_four == "0000"
      or order.id in @devices or user.id in @devices
      or user.email == "eva@shop.example" or lower(user.email) in @devices
    then deny
"""


async def test_values_that_tell_of_a_person_are_masked_in_the_lit_text_too(own_shop: Shop) -> None:
    api = own_shop.service.client
    stored = await api.post("/v1/rules/watched/versions?publish=true", content=WATCHED)
    assert stored.status_code == 201, stored.text
    secrets = {
        "ip": "203.0.113.77",
        "device": "device-of-ana",
        "user": "ana-1984",
        "email": "ana@shop.example",
        "order": "order-of-ana",
    }
    body = payment(
        id="of-ana",
        device={
            "ip_address": secrets["ip"],
            "fingerprint": {"id": secrets["device"], "provider": "basic"},
        },
        user={"id": secrets["user"], "email": "Ana@shop.example"},
        order={"id": secrets["order"]},
        analyze={"bot_behaviour": True, "rule": {"name": "watched"}},
    )
    assert (await api.post("/v1/payments", json=body)).status_code == 201
    page = (await own_shop.browser.get("/console/payments/of-ana")).text
    assert re.search(r'data-value="&quot;dev…na&quot;"', page)
    for secret in (*secrets.values(), "41111111-1111", "&quot;1111&quot;"):
        assert secret.lower() not in page.lower(), secret


async def test_payments_that_share_a_device_are_found_without_its_id_in_the_address(
    shop: Shop,
) -> None:
    page = (await shop.browser.get("/console/payments/order-1")).text
    link = re.search(r'href="(/console/payments\?of=order-1&amp;by=device)"', page)
    assert link is not None
    found = (await shop.browser.get(link[1].replace("&amp;", "&"))).text
    assert ">4 payments<" in found


async def test_a_verdict_is_a_label_and_can_be_taken_back(own_shop: Shop) -> None:
    address = "/console/payments/order-1/label"
    given = await own_shop.browser.post(address, data={"label": "fraud"})
    assert given.status_code == 303
    labels = "/v1/payments/order-1/labels"
    known = (await own_shop.service.client.get(labels)).json()
    assert known["label"] == "fraud"
    page = await own_shop.browser.get(given.headers["location"])
    assert "Undo" in page.text
    await own_shop.browser.post(address, data={"label": ""})
    assert (await own_shop.service.client.get(labels)).json()["label"] is None
    log = (await own_shop.service.client.get("/v1/audit?limit=2")).json()["audit"]
    assert [(each["action"], each["subject"], each["detail"]) for each in log] == [
        ("verdict_taken_back", "payment order-1", {}),
        ("verdict_given", "payment order-1", {"label": "fraud", "reason": None}),
    ]
    assert {each["by"] for each in log} == {own_shop.key[:13]}


async def test_a_verdict_has_a_note_that_its_payment_shows(own_shop: Shop) -> None:
    given = {"label": "fraud", "note": "same person as yesterday"}
    await own_shop.browser.post("/console/payments/order-1/label", data=given)
    page = (await own_shop.browser.get("/console/payments/order-1")).text
    assert "same person as yesterday" in page


async def test_a_list_is_a_file_in_which_nothing_is_a_formula(own_shop: Shop) -> None:
    entries = [{"value": "=1+1", "note": "@a", "expires_at": "2099-01-01T00:00:00Z"}]
    put = await own_shop.service.client.put("/v1/lists/blocked/entries", json={"entries": entries})
    assert put.status_code == 200, put.text
    answer = await own_shop.browser.get("/console/lists/blocked/export.csv")
    title, line = answer.text.splitlines()
    assert title == "value,expires_at,note"
    assert line == "'=1+1,2099-01-01T00:00:00Z,'@a"


async def test_a_file_holds_no_formula_where_semicolons_separate_cells(own_shop: Shop) -> None:
    entries = [{"value": "a;=1+1;b", "note": "c\n@d;-e"}, {"value": "x-y;z", "note": "f;g=h"}]
    put = await own_shop.service.client.put("/v1/lists/blocked/entries", json={"entries": entries})
    assert put.status_code == 200, put.text
    text = (await own_shop.browser.get("/console/lists/blocked/export.csv")).text
    cells = [cell for line in text.splitlines() for cell in line.split(";")]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    assert "x-y;z,,f;g=h" in text


async def test_a_value_of_a_payment_goes_to_a_list_with_a_note(own_shop: Shop) -> None:
    sent = {"put": "device:blocked", "note": "", "span": ""}
    answer = await own_shop.browser.post("/console/payments/order-1/list", data=sent)
    assert answer.status_code == 303
    entries = (await own_shop.service.client.get("/v1/lists/blocked/entries")).json()["entries"]
    assert [(each["value"], each["note"]) for each in entries] == [("d-1", "payment order-1")]
    assert "expires_at" not in entries[0]
    for wrong in ({"put": "order:blocked"}, {"put": "device:blocked", "span": "9h"}):
        answer = await own_shop.browser.post("/console/payments/order-1/list", data=wrong)
        assert answer.status_code == 422


async def test_what_payments_share_goes_to_a_list_that_a_live_rule_asks_for_some_hours(
    own_shop: Shop,
) -> None:
    api, browser = own_shop.service.client, own_shop.browser
    for name in ("aside", "barred"):
        made = await api.put(f"/v1/lists/{name}", json={"type": "string"})
        assert made.status_code == 201
    asking = RULE + (
        "  condition known\n    when device.fingerprint.id in @barred\n    then deny\n"
    ).replace("  condition", "\n  condition", 1)
    text = asking.replace('through"\n', 'through"\n  list barred: string\n', 1)
    stored = await api.post("/v1/rules/gate/versions?publish=true", content=text)
    assert stored.status_code == 201, stored.text
    page = (await browser.get("/console/payments?of=order-1&by=device")).text
    assert re.findall(r'value="(device:\w+)"', page) == [
        "device:barred",
        "device:aside",
        "device:blocked",
    ]
    sent = {"put": "device:barred", "note": "a ring", "span": "6h", "shared": "1"}
    answer = await browser.post("/console/payments/order-1/list", data=sent)
    assert answer.headers["location"] == "/console/payments?of=order-1&by=device&listed=barred"
    assert "Added to barred." in (await browser.get(answer.headers["location"])).text
    (entry,) = (await api.get("/v1/lists/barred/entries")).json()["entries"]
    assert (entry["value"], entry["note"]) == ("d-1", "a ring")
    assert "expires_at" in entry


async def test_one_verdict_for_all_that_a_search_found_is_for_none_that_came_later(
    own_shop: Shop,
) -> None:
    api, browser = own_shop.service.client, own_shop.browser
    page = (await browser.get("/console/payments?q=action:deny")).text
    assert "Give all 3 a verdict" in page
    at = re.search(r'name="at" value="([^"]+)"', page)
    assert at is not None
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    later = payment(id="order-later", amount=400, analyze=asked)
    assert (await api.post("/v1/payments", json=later)).status_code == 201
    sent = {"q": "action:deny", "at": at[1], "label": "fraud", "note": "one ring"}
    answer = await browser.post("/console/payments/labels", data=sent)
    assert answer.headers["location"] == "/console/payments?q=action:deny&labelled=3"
    assert (
        "3 payments have the verdict now." in (await browser.get(answer.headers["location"])).text
    )
    labels = (await api.get("/v1/labels")).json()["labels"]
    assert {(each["source"], each["label"], each["reason"]) for each in labels} == {
        ("review", "fraud", "one ring")
    }
    assert "order-later" not in {each["payment"] for each in labels}
    assert len(labels) == 3


async def test_the_expression_that_decided_stands_first_with_its_values(shop: Shop) -> None:
    denied = (await shop.browser.get("/console/payments/order-1")).text
    assert re.sub("<[^>]+>", "", because(denied)).split() == ["amount", ">", "100.00", "200.00"]
    allowed = (await shop.browser.get("/console/payments/order-0")).text
    said = re.sub("<[^>]+>", "", because(allowed))
    assert said.split() == ["Nearest", "miss,", "large:", "amount", "&gt;", "100.00", "10.00"]


def because(page: str) -> str:
    """What a payment's page says of why it was decided so."""
    found = re.search(r'<p class="because">(.*?)</p>', page)
    assert found is not None
    return found[1].replace("&gt;", ">") if "Nearest" not in found[1] else found[1]


async def test_a_rule_is_published_from_the_editor_and_rolled_back_from_its_page(
    own_shop: Shop,
) -> None:
    rule = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]
    text = rule["text"].replace("100.00", "90.00")
    sent = {"name": "gate", "expected": "1", "text": text.replace("\n", "\r\n"), "act": "publish"}
    answer = await own_shop.browser.post("/console/publish", data=sent)
    assert answer.status_code == 303, answer.text
    live = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]
    assert (live["active"], live["text"]) == (2, text)
    back = await own_shop.browser.post("/console/rules/gate/active", data={"version": "1"})
    assert back.status_code == 303
    assert (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["active"] == 1


async def test_the_editor_says_what_a_text_changes_in_meaning(shop: Shop) -> None:
    text = (await shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    sent = {"text": text.replace("100.00", "90.00")}
    found = (await shop.browser.post("/console/check", data=sent)).text
    assert "What changes in meaning" in found
    assert re.search(r"<del>[^<]*100[^<]*</del> *<ins>[^<]*90[^<]*</ins>", found)
    found = (await shop.browser.post("/console/check", data={"text": text})).text
    assert "Nothing that a decision depends on" in found
    fresh = {"text": text.replace("rule gate", "rule fresh")}
    assert "in meaning" not in (await shop.browser.post("/console/check", data=fresh)).text


async def test_the_editor_proves_what_a_text_does_with_a_payment_that_shows_it(shop: Shop) -> None:
    text = (await shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    found = (await shop.browser.post("/console/proofs", data={"text": text})).text
    assert "Every payment is decided as by what is live" in found
    sent = {"text": text.replace("100.00", "90.00").replace("\n", "\r\n")}
    found = (await shop.browser.post("/console/proofs", data=sent)).text
    assert "A payment that is decided otherwise than by what is live" in found
    assert "meets more than before" in found
    assert "amount = 100.00" in found
    broken = (await shop.browser.post("/console/proofs", data={"text": "rule"})).text
    assert broken == ""


async def test_a_text_is_tried_on_stored_payments_and_shows_which_would_change(
    own_shop: Shop,
) -> None:
    text = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    sent = {"text": text.replace("100.00", "250.00").replace("\n", "\r\n")}
    started = await own_shop.browser.post("/console/backtests", data=sent)
    assert started.status_code == 303, started.text
    while "load delay:1s" in (
        page := (await own_shop.browser.get(started.headers["location"])).text
    ):
        await sleep(0.05)
    assert "1 of 4 payments would be decided otherwise" in page
    assert 'href="/console/payments/order-1"' in page
    gone = await own_shop.browser.post(f"{started.headers['location']}/end")
    assert gone.headers["location"] == "/console/rules/gate"
    assert (await own_shop.browser.get(started.headers["location"])).status_code == 404


async def test_while_a_backtest_goes_on_its_page_shows_the_first_payments_that_would_change(
    own_shop: Shop,
) -> None:
    text = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    sent = {"text": text.replace("100.00", "250.00").replace("\n", "\r\n")}
    started = await own_shop.browser.post("/console/backtests", data=sent)
    (run,) = own_shop.service.jobs.runs(1, "backtest")
    assert run.task is not None
    await run.task
    run.state = "running"  # as it was when the payment was found
    page = (await own_shop.browser.get(started.headers["location"])).text
    assert "The first payments that would be decided otherwise" in page
    assert 'href="/console/payments/order-1"' in page
    assert "would be decided otherwise</strong>" not in page


async def test_a_version_published_until_a_time_says_so_on_its_page(own_shop: Shop) -> None:
    text = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    sent = {"name": "gate", "expected": "1", "text": text.replace("100", "90"), "act": "publish"}
    terms = {"until": "6h", "reason": "an attack"}
    answer = await own_shop.browser.post("/console/publish", data={**sent, **terms})
    assert answer.status_code == 303, answer.text
    page = (await own_shop.browser.get("/console/rules/gate")).text
    assert re.search(r"v2 is live <strong[^>]*>until <time[^>]*>[^<]+</time>, then v1 again", page)
    assert "an attack" in (await own_shop.browser.get("/console/changes")).text


async def test_after_its_time_the_former_version_is_live_and_the_changes_say_so(
    own_shop: Shop,
) -> None:
    engine, browser = own_shop.service.engine, own_shop.browser
    text = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    sent = {"name": "gate", "expected": "1", "text": text.replace("100", "90"), "act": "publish"}
    await browser.post("/console/publish", data={**sent, "until": "6h", "reason": "an attack"})
    assert "v2 is live" in (await browser.get("/console/rules/gate")).text
    later = engine.clock() + 6 * 3_600_000_000
    engine.clock = lambda: later
    await end_due(engine)
    own_shop.browser = browser = await sign_in(own_shop.service, own_shop.key)
    page = (await browser.get("/console/rules/gate")).text
    assert "v1 is live" in page
    assert "until <time" not in page
    changes = (await browser.get("/console/changes")).text
    assert changes.index("<b>ended</b> true") < changes.index("an attack")


async def test_an_erased_person_leaves_a_payment_that_names_nobody_and_says_why_it_is_not_repeated(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    user = {"id": "u-gone", "email": "gone@shop.example"}
    body = payment(
        id="of-gone",
        amount=200,
        user=user,
        analyze={"bot_behaviour": True, "rule": {"name": "gate"}},
    )
    assert (await api.post("/v1/payments", json=body)).status_code == 201
    erased = await api.post("/v1/erasures", json={"user": "u-gone"})
    assert erased.status_code in (200, 202), erased.text
    page = await own_shop.browser.get("/console/payments/of-gone")
    assert page.status_code == 200
    assert "repeated exactly" in page.text
    for value in ("u-gone", "gone@shop.example", "g***@"):
        assert value not in page.text


async def test_the_editor_completes_the_lists_of_this_account(shop: Shop) -> None:
    known = (await shop.browser.get("/console/vocabulary.json")).json()
    assert "blocked" in [each["name"] for each in known["lists"]]


async def test_a_text_that_is_refused_stays_in_the_editor_with_the_reason(shop: Shop) -> None:
    text = "rule gate\n  condition odd when amunt > 1 then deny\n"
    sent = {"name": "gate", "expected": "1", "text": text, "act": "publish"}
    answer = await shop.browser.post("/console/publish", data=sent)
    assert answer.status_code == 422
    assert "amunt &gt; 1" in answer.text
    assert "amount" in answer.text


async def test_somebody_elses_newer_version_is_never_overwritten(own_shop: Shop) -> None:
    text = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    changed = text.replace("100.00", "90.00")
    stored = await own_shop.service.client.post("/v1/rules/gate/versions", content=changed)
    assert stored.status_code == 201
    late = text.replace("100.00", "80.00")
    sent = {"name": "gate", "expected": "1", "text": late, "act": "publish"}
    answer = await own_shop.browser.post("/console/publish", data=sent)
    assert answer.status_code == 409
    assert "Somebody stored v2 meanwhile" in answer.text
    assert re.search(r'class="removed">-[^<]*90\.00', answer.text)
    assert re.search(r'class="added">\+[^<]*80\.00', answer.text)
    again = await own_shop.browser.post("/console/publish", data={**sent, "expected": "2"})
    assert again.status_code == 303, again.text


async def test_a_form_of_another_site_changes_nothing(shop: Shop) -> None:
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        answer = await shop.browser.post(
            "/console/payments/order-1/label", data={"label": "fraud"}, headers=headers
        )
        assert answer.status_code == 403
    assert (await shop.service.client.get("/v1/payments/order-1/labels")).json()["label"] is None


@pytest.mark.parametrize(
    "query",
    [
        "contain?contained=1&until=soon",
        f"came-back?from={'9' * 5000}",
        "contain?contained=1&until=x",
    ],
)
async def test_a_page_is_made_whatever_its_address_says(shop: Shop, query: str) -> None:
    assert (await shop.browser.get(f"/console/{query}")).status_code == 200


@pytest.mark.parametrize("end", ["soon", "9" * 5000, "0001-01-01T00:00", "9999-12-31T23:59"])
async def test_a_time_that_is_none_is_refused_with_words(own_shop: Shop, end: str) -> None:
    zone = {"account": {"time_zone": "Asia/Kolkata"}}
    assert (await own_shop.service.client.put("/v1/account", json=zone)).status_code == 200
    form = {"values": "d-1", "note": "a ring", "expires_at": end}
    answer = await own_shop.browser.post("/console/lists/blocked/entries", data=form)
    assert answer.status_code in (303, 422)
    assert "entries[0].expires_at" in answer.text or end.startswith("9999")


async def test_a_form_without_its_fields_is_refused_with_words(shop: Shop) -> None:
    answer = await shop.browser.post("/console/rules/gate/active", data={"version": "new"})
    assert answer.status_code == 422
    assert "incomplete" in answer.text


async def test_what_is_not_there_is_said_to_be_refused(shop: Shop) -> None:
    answer = await shop.browser.get("/console/payments/nobody")
    assert answer.status_code == 404
    assert "Not found" in answer.text
    assert 'data-page="payments"' in answer.text  # with the menu, which leads on
    assert (await shop.browser.get("/console/nothing")).status_code == 404


async def test_the_review_says_what_waits_since_when_and_how_fast_it_goes(own_shop: Shop) -> None:
    page = (await own_shop.browser.get("/console/review")).text
    assert re.search(r"The oldest came \d+ s ago\. ", page)
    assert "Verdicts of the last hour: 0." in page
    await own_shop.browser.post("/console/payments/order-1/label", data={"label": "fraud"})
    assert "Verdicts of the last hour: 1." in (await own_shop.browser.get("/console/review")).text


async def test_the_review_begins_with_the_oldest_each_with_its_age(own_shop: Shop) -> None:
    for sort, first in (("", "order-0"), ("oldest", "order-0"), ("newest", HOSTILE)):
        form = {"sort": sort} if sort else {}
        taken = await own_shop.browser.post("/console/review", data=form)
        sent = await own_shop.browser.get(taken.headers["location"])
        rows = re.findall(r'<tr data-id="([^"]+)".*?<small>\d+ s ago</small>', sent.text)
        assert unescape(rows[0]) == first
        assert len(rows) == 4
    refused = await own_shop.browser.post("/console/review", data={"sort": "dearest"})
    assert refused.status_code == 422


async def test_payments_that_one_took_are_there_again_until_they_are_judged(own_shop: Shop) -> None:
    browser = own_shop.browser
    taken = await browser.post("/console/review", data={"sort": "oldest"})
    again = taken.headers["location"]
    assert again == "/console/review?sort=oldest&taken=4"
    assert await browser.post("/console/review/order-1", data={"label": "fraud"})
    while (await own_shop.service.client.get("/v1/payments/count")).json()["lag_ms"]:
        await sleep(0.01)
    for address in (again, "/console/review"):
        page = (await browser.get(address)).text
        rows = [unescape(each) for each in re.findall(r'<tr data-id="([^"]+)"', page)]
        assert rows == ["order-0", "order-2", HOSTILE]


async def test_the_review_offers_the_dearest_first_in_each_currency_that_waits(
    own_shop: Shop,
) -> None:
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    yen = payment(id="yen", amount=70_000, currency="JPY", analyze=asked)
    assert (await own_shop.service.client.post("/v1/payments", json=yen)).status_code == 201
    page = (await own_shop.browser.get("/console/review")).text
    orders = re.findall(r'<option value="dearest:(\w+)">Dearest first, (\w+)<', page)
    (common, _), rare = orders
    assert rare == ("JPY", "JPY")
    form = {"sort": f"dearest:{common}"}
    taken = await own_shop.browser.post("/console/review", data=form)
    sent = await own_shop.browser.get(taken.headers["location"])
    rows = [unescape(each) for each in re.findall(r'<tr data-id="([^"]+)"', sent.text)]
    assert rows == [HOSTILE, "order-2", "order-1", "order-0"]
    assert f'<option value="dearest:{common}" selected="">' in sent.text


async def test_the_menu_says_how_many_alerts_and_proposals_are_open(own_shop: Shop) -> None:
    api, browser = own_shop.service.client, own_shop.browser
    assert 'hx-get="/console/waiting/alerts"' in (await browser.get("/console/lists")).text
    for name in ("alerts", "changes"):
        assert (await browser.get(f"/console/waiting/{name}")).text == ""
    wanted = {"account": {"approvals": {"lists": True}}}
    assert (await api.put("/v1/account", json=wanted)).status_code == 200
    await browser.post("/console/lists/blocked/entries", data={"values": "d-9", "note": "a ring"})
    assert (await browser.get("/console/waiting/changes")).text == "1"
    assert (await browser.get("/console/waiting/lists")).status_code == 404


async def test_what_was_published_meanwhile_is_marked_on_the_flow_of_decisions(shop: Shop) -> None:
    page = (await shop.browser.get("/console")).text
    (marks,) = re.findall(r'data-marks="([^"]*)"', page)
    ((at, said),) = json.loads(unescape(marks))
    assert said.startswith("gate v1 · ")
    moments = json.loads(unescape(re.findall(r'data-chart="([^"]*)"', page)[0]))[0]
    assert moments[0] <= at <= moments[-1]


async def test_the_log_is_narrowed_by_who_what_and_of_what_and_so_is_its_file(
    own_shop: Shop,
) -> None:
    page = (await own_shop.browser.get("/console/changes?action=list_made")).text
    assert "list made" in rows_of(page)
    assert "version stored" not in rows_of(page)
    none = (await own_shop.browser.get("/console/changes?subject=rule+nobody")).text
    assert "Nothing of the kind was done." in none
    odd = await own_shop.browser.get("/console/changes?action=no+such")
    assert odd.status_code == 200
    assert "<code>action</code>" in odd.text
    reads = (await own_shop.browser.get("/console/changes?kind=access")).text
    assert "Nothing of the kind was done." in reads
    await own_shop.browser.get("/console/payments")
    await write_accesses(own_shop.service.engine)
    of_form = "?kind=change&by=&action=personal_data_read"
    for query, shown in (
        ("", False),
        ("?kind=access", True),
        ("?kind=every", True),
        (of_form, True),
    ):
        page_of = (await own_shop.browser.get(f"/console/changes{query}")).text
        assert ("personal data read" in rows_of(page_of)) == shown, query
    address = "/console/changes/export.csv?action=list_made"
    assert f'href="{address}"' in page
    lines = (await own_shop.browser.get(address)).text.splitlines()
    assert [line.split(",")[2] for line in lines] == ["action", "list_made"]


def rows_of(page: str) -> str:
    return page.partition("<tbody>")[2].partition("</tbody>")[0]


async def test_thresholds_are_weighed_and_led_to_the_settings(own_shop: Shop) -> None:
    api = own_shop.service.client
    for number, label in enumerate(("legitimate", "fraud", "fraud")):
        path = f"/v1/payments/order-{number}/labels/review"
        assert (await api.put(path, json={"label": label})).status_code == 200
    page = (await own_shop.browser.get("/console/score?challenge=0.01&deny=0.02")).text
    weighed = (await api.get("/v1/thresholds?since=30d&challenge=0.01&deny=0.02")).json()["asked"]
    shown = page.partition(">These<")[2].partition("</tr>")[0]
    assert [each for each in weighed["cost"].values() if each not in shown] == []
    led = "/console/settings?challenge=0.01&amp;deny=0.02"
    assert f'href="{led}"' in shown
    odd = await own_shop.browser.get("/console/score?challenge=NaN&deny=Infinity")
    assert odd.status_code == 422
    settings = (await own_shop.browser.get(unescape(led))).text
    assert 'name="deny" step="0.01" min="0" max="1" value="0.02"' in settings


async def test_whoever_may_only_read_payments_sees_no_way_to_the_rest(shop: Shop) -> None:
    key = await shop.service.key("shop", "payments:read", "personal:read")
    viewer = await sign_in(shop.service, key)
    page = await viewer.get("/console/payments")
    assert page.status_code == 200
    assert 'data-page="settings"' not in page.text
    assert 'data-page="rules"' not in page.text
    refused = await viewer.get("/console/settings")
    assert refused.status_code == 403
    await viewer.aclose()


async def test_a_search_has_a_name_that_everybody_finds_and_names_nobody(own_shop: Shop) -> None:
    browser, api = own_shop.browser, own_shop.service.client
    sent = {"q": "action:deny since:1d", "name": "refused <today>"}
    assert (await browser.post("/console/searches", data=sent)).status_code == 303
    page = (await browser.get("/console/payments")).text
    link = '<a href="/console/payments?q=action:deny+since:1d">refused &lt;today&gt;</a>'
    assert link in page
    for query in ("card:41111111-1111", "email:ana@shop.example since:1h", "colour:red", ""):
        body = {"search": {"query": query}}
        assert (await api.put("/v1/searches/x", json=body)).status_code == 422, query
    shown = (await browser.get("/console/payments", params={"q": sent["q"]})).text
    assert "Forget refused" in shown
    assert (await browser.post("/console/searches", data={**sent, "drop": "1"})).status_code == 303
    assert (await api.get("/v1/searches")).json()["searches"] == []
    assert (await api.delete("/v1/searches/x")).status_code == 404


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("colour:red", "there is no <code>colour</code> to find payments by"),
        ("since:1h until:2h", "<code>since</code> is not before <code>until</code>"),
    ],
)
async def test_a_search_that_is_wrong_says_why_and_keeps_what_was_typed(
    shop: Shop, typed: str, said: str
) -> None:
    answer = await shop.browser.get("/console/payments", params={"q": typed})
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.text
    assert said in unescape(answer.text)


async def test_every_member_that_the_search_tells_of_can_be_asked_for(shop: Shop) -> None:
    page = (await shop.browser.get("/console/payments")).text
    assert " ".join(SEARCH_MEMBERS) in unescape(page)
    for member in SEARCH_MEMBERS:
        answer = await shop.service.client.get("/v1/payments", params={"q": member})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("order-1", ["id", "user", "device", "order"]),
        ("550000", ["bin", "id", "user", "device", "order"]),
        ("ana@shop.example", ["email", "user"]),
        ("2001:db8::7", ["ip"]),
    ],
)
async def test_a_bare_value_is_offered_as_what_it_may_be(
    shop: Shop, typed: str, offered: list[str]
) -> None:
    page = await shop.browser.get("/console/payments", params={"q": typed})
    assert page.status_code == 422
    assert re.findall(rf">(\w+):{typed}</a>", page.text) == offered


async def test_a_list_says_which_live_rules_look_values_up_in_it(own_shop: Shop) -> None:
    page = (await own_shop.browser.get("/console/lists")).text
    assert "no live rule" in page
    text = RULE.replace("  condition", "  list blocked: string\n  condition", 1)
    await own_shop.service.client.post("/v1/rules/gate/versions?publish=true", content=text)
    page = (await own_shop.browser.get("/console/lists")).text
    assert "no live rule" not in page
    assert '<a href="/console/rules/gate">gate</a>' in page


async def test_a_rules_conditions_are_told_with_their_titles(shop: Shop) -> None:
    page = (await shop.browser.get("/console/rules/gate")).text
    assert ">large<small>A large amount</small>" in page


async def test_a_report_says_of_whom_and_of_when_it_is(shop: Shop) -> None:
    page = (await shop.browser.get("/console/report")).text
    assert re.search(r">shop, all merchants, as of \d\d \w{3} \d{4} \d\d:\d\d<", page)
    assert "Times are in UTC." in page


async def test_a_log_that_can_not_be_narrowed_so_says_why_and_not_that_it_is_empty(
    shop: Shop,
) -> None:
    page = (await shop.browser.get("/console/changes?since=yesterday")).text
    assert "this is a span back" in page
    assert "Nothing of the kind" not in page
    assert '<option value="activated">made live</option>' in page


async def test_a_file_of_payments_holds_no_formula(shop: Shop) -> None:
    answer = await shop.browser.get("/console/payments/export.csv?q=action:deny")
    assert answer.headers["content-type"].startswith("text/csv")
    lines = answer.text.splitlines()
    assert len(lines) == 4
    assert not [
        cell for line in lines for cell in line.split(",") if cell.startswith(("=", "+", "-", "@"))
    ]


async def test_a_file_of_payments_holds_all_that_were_found(
    own_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.api.console.pages.payments.EXPORT_PAGE", "1")
    for number in range(25):
        body = payment(id=f"many-{number}", merchant={"id": "m-many"})
        assert (await own_shop.service.client.post("/v1/payments", json=body)).status_code == 201
    file = (await own_shop.browser.get("/console/payments/export.csv?q=merchant:m-many")).text
    assert len(file.splitlines()) == 26
    refused = await own_shop.browser.get("/console/payments/export.csv?q=colour:red")
    assert refused.status_code == 422


async def test_a_file_that_can_not_be_read_to_its_end_breaks_off() -> None:
    async def pages() -> AsyncIterator[list[list[str]]]:
        yield [["p-1"]]
        raise RefusalError(503, [{"message": "too busy"}])

    sent = []
    answer = await csv_file("payments", ["id"], pages())
    with pytest.raises(RefusalError):
        sent += [each async for each in answer.iterator]


async def test_each_page_shows_its_calls_as_curl_without_the_key(shop: Shop) -> None:
    text = (await shop.browser.get("/console/payments/order-1")).text
    assert "/v1/payments/order-1/explanation" in text
    assert shop.key not in text
    assert "tolls_" not in text


async def test_a_file_of_changes_holds_no_formula_of_who_made_them(own_shop: Shop) -> None:
    engine = own_shop.service.engine
    link = await MakeLink("shop", "=1+1", ("admin",)).perform(engine, "test", lambda _share: None)
    started = await own_shop.service.client.post(
        "/v1/sessions", json={"session": {"code": link.key}}
    )
    headers = {"authorization": f"Bearer {started.json()['session']['token']}"}
    async with own_shop.service.client_with(None) as owner:
        made = await owner.put("/v1/lists/new", json={"type": "string"}, headers=headers)
    assert made.status_code == 201
    lines = (await own_shop.browser.get("/console/changes/export.csv")).text.splitlines()
    assert lines[1].split(",")[1] == "'=1+1"


async def test_the_page_of_scores_tells_how_many_denials_are_wrong(own_shop: Shop) -> None:
    api = own_shop.service.client
    page = (await own_shop.browser.get("/console/score")).text
    assert "Nobody has passed who was denied" in page
    await api.put("/v1/account", json={"account": {"holdout": {"percent": 100}}})
    asked = {"bot_behaviour": True, "rule": {"name": "gate"}}
    for number in range(2):
        body = payment(id=f"held-{number}", amount=200, analyze=asked)
        assert (await api.post("/v1/payments", json=body)).status_code == 201
        label = {"label": "legitimate" if number else "fraud"}
        path = f"/v1/payments/held-{number}/labels/review"
        assert (await api.put(path, json=label)).status_code == 200
    page = (await own_shop.browser.get("/console/score")).text
    assert "50\u202f% of denials, " in page
    assert 'href="/console/payments?q=holdout:true"' in page


async def test_every_page_is_there_for_an_account_that_has_nothing_yet(tmp_path: Path) -> None:
    async with open_service(tmp_path / "data") as service:
        browser = await sign_in(service, await service.key("shop", "admin"))
        for address in (*(each for _, each, _ in NAVIGATION), *WITHOUT_ANYTHING):
            page = await browser.get(address)
            assert page.status_code == 200, address
            assert "nan" not in page.text.lower().split("<main")[1].split("<footer")[0].split()
        await browser.aclose()


WITHOUT_ANYTHING = (
    "/console/contain",
    "/console/came-back",
    "/console/new-rule",
    "/console/settings/users",
    "/console/settings/keys",
    "/console/score?challenge=0.5&deny=0.9",
    "/console/report?merchant=m-1",
    "/console/alerts?state=open",
    "/console/changes?kind=every",
)
