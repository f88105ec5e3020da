"""Four eyes on the pages: proposed in the editor, weighed under changes, approved by another."""

from __future__ import annotations

import re
from datetime import datetime
from html import unescape
from zoneinfo import ZoneInfo

import pytest

from tollkeeper.tests.api.console.conftest import Shop
from tollkeeper.tests.api.console.test_users import come_in
from tollkeeper.tests.api.http.late_proofs import PROMISED, leave_no_time_for_proofs

pytestmark = pytest.mark.anyio


async def need_two(shop: Shop) -> None:
    settings = {"account": {"approvals": {"publish": True, "thresholds": True}}}
    assert (await shop.service.client.put("/v1/account", json=settings)).status_code == 200


async def text_of(shop: Shop) -> str:
    text: str = (await shop.service.client.get("/v1/rules/gate")).json()["rule"]["text"]
    return text


async def test_a_text_is_proposed_in_the_editor_and_approved_by_another(own_shop: Shop) -> None:
    await need_two(own_shop)
    text = (await text_of(own_shop)).replace("100.00", "90.00")
    async with come_in(own_shop, "eva", "analyst") as eva, come_in(own_shop, "rui", "lead") as rui:
        editor = (await eva.get("/console/rules/gate/edit")).text
        assert 'value="propose"' in editor
        assert 'value="publish"' not in editor
        sent = {"name": "gate", "expected": "1", "text": text, "act": "propose"}
        answer = await eva.post("/console/publish", data={**sent, "reason": "more card testing"})
        assert answer.headers["location"] == "/console/changes?proposed=1", answer.text
        seen = (await eva.get("/console/changes")).text
        assert "Approve" not in seen
        assert "Take back" in seen
        seen = (await rui.get("/console/changes")).text
        assert "more card testing" in seen
        assert re.search(r"<del>[^<]*100[^<]*</del>", seen)
        assert re.search(r"<ins>[^<]*90[^<]*</ins>", seen)
        decided = await rui.post("/console/changes/1", data={"act": "approve"})
        assert decided.status_code == 303, decided.text
        assert (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["active"] == 2
        seen = (await rui.get("/console/changes")).text
        assert "Nothing waits" in seen
        report = (await rui.get("/console/report")).text
        assert "Proposals approved: 1, refused: 0, published alone: 0." in report


async def test_enter_after_the_reason_refuses_a_proposal_and_never_approves_it(
    own_shop: Shop,
) -> None:
    await need_two(own_shop)
    publish = {"name": "gate", "kind": "rule"}
    sent = {"proposal": {"note": "a", "unpublish": publish}}
    assert (await own_shop.service.client.post("/v1/proposals", json=sent)).status_code == 201
    async with come_in(own_shop, "rui", "lead") as rui:
        page = (await rui.get("/console/changes")).text
    (form,) = re.findall(r'<form[^>]*action="/console/changes/1".*?</form>', page, re.DOTALL)
    # What Enter in a field presses is the form's first button.
    assert re.findall(r'<button name="act" value="(\w+)"', form) == ["refuse", "approve"]


async def test_a_proposal_without_a_reason_keeps_the_text(own_shop: Shop) -> None:
    await need_two(own_shop)
    text = (await text_of(own_shop)).replace("100.00", "90.00")
    sent = {"name": "gate", "expected": "1", "text": text, "act": "propose", "reason": ""}
    answer = await own_shop.browser.post("/console/publish", data=sent)
    assert answer.status_code == 422
    assert "amount &gt; 90.00" in answer.text


async def test_moments_in_the_log_and_in_alerts_are_in_the_accounts_zone(own_shop: Shop) -> None:
    await need_two(own_shop)
    api = own_shop.service.client
    settings = {"account": {"time_zone": "Asia/Kolkata"}}
    assert (await api.put("/v1/account", json=settings)).status_code == 200
    text = (await text_of(own_shop)).replace("100.00", "90.00")
    await api.post("/v1/rules/gate/versions", content=text)
    async with come_in(own_shop, "ana", "lead") as ana:
        proposed = {"version": "2", "reason": "an attack", "until": ""}
        await ana.post("/console/rules/gate/propose", data=proposed)
        alone = {"act": "alone", "until": "6h", "reason": "2026-02-30T00:00:00Z"}
        assert (await ana.post("/console/changes/1", data=alone)).status_code == 303
        until = (await api.get("/v1/rules/gate")).json()["rule"]["until"]
        local = datetime.fromisoformat(until).astimezone(ZoneInfo("Asia/Kolkata"))
        (alert,) = (await api.get("/v1/alerts")).json()["alerts"]
        for address in ("/console/changes", "/console/alerts", f"/console/alerts/{alert['id']}"):
            page = (await ana.get(address)).text
            assert f'title="{until}">{local:%d %b %Y %H:%M:%S}<' in page
            assert "2026-02-30T00:00:00Z" in page
            assert f">{until}" not in page


async def test_who_approves_a_version_of_an_event_type_sees_from_when_it_applies(
    own_shop: Shop,
) -> None:
    await need_two(own_shop)
    client = own_shop.service.client
    await client.post("/v1/event-types/sale/versions", content="event sale\n  field a: string\n")
    sale = {"name": "sale", "version": 1, "kind": "event_type"}
    sale["applies_from"] = "2099-02-01T00:00:00Z"
    proposed = await client.post("/v1/proposals", json={"proposal": {"note": "a", "publish": sale}})
    assert proposed.status_code == 201, proposed.text
    page = (await own_shop.browser.get("/console/changes")).text
    assert re.search(r'Applies from</dt><dd><time[^>]*datetime="2099-02-01', page)


async def test_who_approves_an_entry_of_a_table_sees_its_columns(own_shop: Shop) -> None:
    client = own_shop.service.client
    table = {"by": "value", "columns": {"most": "number"}}
    assert (await client.put("/v1/lists/limits", json=table)).status_code == 201
    entries = [{"value": "u-1", "columns": {"most": "100000"}}]
    wanted = {"note": "a", "entries": {"name": "limits", "entries": entries}}
    proposed = await client.post("/v1/proposals", json={"proposal": wanted})
    assert proposed.status_code == 201, proposed.text
    page = (await own_shop.browser.get("/console/changes")).text
    assert "<code>u-1</code> most 100000" in page


async def test_who_approves_sees_what_was_not_tried_of_a_version(
    own_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await need_two(own_shop)
    leave_no_time_for_proofs(monkeypatch)
    client = own_shop.service.client
    assert (await client.post("/v1/rules/gate/versions", content=PROMISED)).status_code == 201
    for skips in (False, True):
        publish = {"name": "gate", "version": 2, "untested": skips}
        sent = {"proposal": {"note": "a", "publish": publish}}
        assert (await client.post("/v1/proposals", json=sent)).status_code == 201
    page = (await own_shop.browser.get("/console/changes")).text
    skipped, tried = page.split('<article class="entity">')[1:]
    assert "1 <code>must</code> line was not tried in 0 seconds: line 3" in tried
    assert "tests and <code>must</code> lines were skipped" in skipped


async def test_what_was_published_alone_is_said_on_the_first_page(own_shop: Shop) -> None:
    await need_two(own_shop)
    await own_shop.service.client.post(
        "/v1/rules/gate/versions", content=(await text_of(own_shop)).replace("100.00", "90.00")
    )
    async with come_in(own_shop, "ana", "lead") as ana, come_in(own_shop, "rui", "lead") as rui:
        proposed = {"version": "2", "reason": "an attack", "until": ""}
        assert (await ana.post("/console/rules/gate/propose", data=proposed)).status_code == 303
        alone = {"act": "alone", "until": "6h", "reason": "nobody is awake"}
        assert (await ana.post("/console/changes/1", data=alone)).status_code == 303
        first = (await rui.get("/console")).text
        assert "gate v2 was published by ana alone: nobody is awake" in first
        alerts = (await rui.get("/console/alerts")).text
        link = re.search(r'href="(/console/alerts/[0-9a-f-]+)"', alerts)
        assert link is not None
        alert = (await rui.get(link[1])).text
        assert "gate v2 was published alone" in alert
        assert 'href="/console/changes" class="button"' in alert
        refused = {"act": "refuse", "reason": "it was a sale"}
        assert (await rui.post("/console/changes/1", data=refused)).status_code == 303
        assert "by ana alone" not in (await rui.get("/console")).text
    assert (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["active"] == 1


async def test_thresholds_saved_on_the_settings_page_become_a_proposal(own_shop: Shop) -> None:
    form = {"challenge": "0.5", "deny": "0.85", "time_zone": "UTC", "retention_days": "365"}
    form |= {"chargeback": "15", "margin": "0.1", "challenge_lost": "0.03"}
    form |= {"percent": "0", "by": "user"}
    api = own_shop.service.client
    both = {"approve_publish": "1", "approve_thresholds": "1"}
    saved = await own_shop.browser.post("/console/settings", data={**form, **both})
    assert saved.headers["location"] == "/console/settings?saved=1"
    stricter = {**form, **both, "deny": "0.8", "time_zone": "Europe/Berlin", "note": "an attack"}
    proposed = await own_shop.browser.post("/console/settings", data=stricter)
    assert proposed.headers["location"] == "/console/changes?proposed=1"
    account = (await api.get("/v1/account")).json()["account"]
    assert (account["time_zone"], account["thresholds"]["deny"]) == ("Europe/Berlin", 0.85)
    tried = {**form, **both, "percent": "1.5", "chargeback": "20", "note": "to know"}
    held = await own_shop.browser.post("/console/settings", data=tried)
    assert held.headers["location"] == "/console/changes?proposed=2"
    account = (await api.get("/v1/account")).json()["account"]
    assert (account["costs"]["chargeback"], account["holdout"]["percent"]) == (20.0, 0.0)
    shorter = {**form, **both, "chargeback": "20", "retention_days": "30", "note": "a policy"}
    kept = await own_shop.browser.post("/console/settings", data=shorter)
    assert kept.headers["location"] == "/console/changes?proposed=3"
    assert (await api.get("/v1/account")).json()["account"]["retention_days"] == 365
    for days in ("1e9999999", "1e999999999", "Infinity", "NaN", "a year"):
        endless = {**form, **both, "retention_days": days}
        assert (await own_shop.browser.post("/console/settings", data=endless)).status_code == 422
    lifted = await own_shop.browser.post("/console/settings", data={**form, "note": "a nuisance"})
    assert lifted.headers["location"] == "/console/changes?proposed=4"


async def test_all_entries_that_wait_for_another_are_in_a_file(own_shop: Shop) -> None:
    api = own_shop.service.client
    await api.put("/v1/lists/many", json={"type": "string"})
    await api.put("/v1/account", json={"account": {"approvals": {"lists": True}}})
    values = [f"d-{number}" for number in range(25)]
    sent = {"values": "\n".join(values), "note": "card testing"}
    answer = await own_shop.browser.post("/console/lists/many/entries", data=sent)
    shown = (await own_shop.browser.get(answer.headers["location"])).text
    assert "many: put 25 entries in" in shown
    file = re.search(r'href="(/console/changes/1/entries.csv)"', shown)
    assert file is not None
    title, *lines = (await own_shop.browser.get(file[1])).text.splitlines()
    assert title == "value,expires_at,note"
    assert lines == [f"{value},,card testing" for value in values]
    few = {"values": "d-1", "note": "card testing"}
    await own_shop.browser.post("/console/lists/many/entries", data=few)
    assert (
        "/console/changes/2/entries.csv"
        not in (await own_shop.browser.get("/console/changes")).text
    )


async def test_entries_of_a_list_wait_for_another_where_the_account_asks_for_it(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    await api.put("/v1/lists/blocked_now", json={"type": "string"})
    entries = "/v1/lists/blocked_now/entries"
    page = "/console/lists/blocked_now"
    assert 'maxlength="200" required' not in (await own_shop.browser.get(page)).text
    settings = {"account": {"approvals": {"lists": True}}}
    assert (await api.put("/v1/account", json=settings)).status_code == 200
    async with come_in(own_shop, "eva", "analyst") as eva, come_in(own_shop, "rui", "lead") as rui:
        shown = (await eva.get(page)).text
        assert "waits for another&#x27;s approval" in shown
        assert 'name="note" maxlength="200" required=""' in shown
        of_payment = (await eva.get("/console/payments/order-1")).text
        assert 'name="note" maxlength="200" required=""' in of_payment
        portuguese = (await eva.get(page, headers={"accept-language": "pt-BR"})).text
        assert "espera pela aprovação de outra pessoa" in portuguese
        sent = {"values": "d-1\nd-2", "note": "card testing"}
        answer = await eva.post(f"{page}/entries", data=sent)
        assert answer.headers["location"] == "/console/changes?proposed=1", answer.text
        file = {"csv": "value,note\nd-3,a file\n", "note": "from the bank"}
        answer = await eva.post(f"{page}/import", data=file)
        assert answer.headers["location"] == "/console/changes?proposed=2", answer.text
        assert (await api.get(entries)).json()["entries"] == []
        seen = (await rui.get("/console/changes")).text
        assert "blocked_now: put 2 entries in" in seen
        assert "<code>d-2</code>" in seen
        assert "Break the glass" in seen
        assert (await rui.post("/console/changes/1", data={"act": "approve"})).status_code == 303
        alone = {"act": "alone", "until": "6h", "reason": "nobody is awake"}
        assert (await rui.post("/console/changes/2", data=alone)).status_code == 303
        held = (await api.get(entries)).json()["entries"]
        assert [each["value"] for each in held] == ["d-1", "d-2", "d-3"]
        assert "Entries of blocked_now were put by rui alone" in (await eva.get("/console")).text
        removal = {"remove": "d-1", "note": "a regular"}
        answer = await eva.post(f"{page}/entries", data=removal)
        assert answer.headers["location"] == "/console/changes?proposed=3", answer.text


async def proposed(shop: Shop, **what: object) -> int:
    """The number of a proposal by a key without a person."""
    sent = {"proposal": {"note": "card testing", **what}}
    answer = await shop.service.client.post("/v1/proposals", json=sent)
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["proposal"]["number"]
    return number


async def version_of(shop: Shop, text: str, path: str = "rules/gate") -> int:
    stored = await shop.service.client.post(f"/v1/{path}/versions", content=text)
    assert stored.status_code == 201, stored.text
    version: int = next(iter(stored.json().values()))["version"]
    return version


def articles(page: str) -> list[str]:
    """What is said of each proposal, as people read it."""
    _, *found = unescape(page).split('<article class="entity">')
    return [each.partition("</article>")[0] for each in found]


async def test_who_approves_a_version_sees_its_warnings_its_base_and_until_when_to_decide(
    own_shop: Shop,
) -> None:
    await need_two(own_shop)
    text = 'rule gate\n  list risky: string\n  condition a "A" when user.id in @risky then deny\n'
    await proposed(own_shop, publish={"name": "gate", "version": await version_of(own_shop, text)})
    (seen,) = articles((await own_shop.browser.get("/console/changes")).text)
    assert "<dt>Live at the proposal</dt><dd>v1</dd>" in seen
    assert "<dt>To be decided until</dt>" in seen
    assert "<code>@risky</code> has no entries yet" in seen
    assert 'action="/console/backtests"' in seen


async def test_who_approves_what_nothing_was_live_before_reads_its_text(own_shop: Shop) -> None:
    await need_two(own_shop)
    sale = "event sale\n  field a: string\n"
    version = await version_of(own_shop, sale, "event-types/sale")
    of = {"name": "sale", "version": version, "kind": "event_type"}
    await proposed(own_shop, publish=of)
    (seen,) = articles((await own_shop.browser.get("/console/changes")).text)
    assert "<dt>Live at the proposal</dt><dd>nothing of this name</dd>" in seen
    assert "field a: string" in seen


async def test_what_nobody_can_approve_any_more_says_why_and_offers_it_to_nobody(
    own_shop: Shop,
) -> None:
    await need_two(own_shop)
    text = await text_of(own_shop)
    async with come_in(own_shop, "eva", "analyst") as eva, come_in(own_shop, "rui", "lead") as rui:
        for limit in ("90.00", "80.00"):
            version = await version_of(own_shop, text.replace("100.00", limit))
            sent = {"version": str(version), "reason": "card testing", "until": ""}
            assert (await eva.post("/console/rules/gate/propose", data=sent)).status_code == 303
        assert (await rui.post("/console/changes/2", data={"act": "approve"})).status_code == 303
        (seen,) = articles((await rui.get("/console/changes")).text)
    assert "Nobody can approve it any more: what it would take the place of has changed" in seen
    assert 'value="approve"' not in seen
    assert 'value="alone"' not in seen
    assert 'value="refuse"' in seen


async def test_who_may_not_approve_reads_why_and_not_that_the_role_lacks_it(own_shop: Shop) -> None:
    await need_two(own_shop)
    version = await version_of(own_shop, (await text_of(own_shop)).replace("100.00", "90.00"))
    await proposed(own_shop, publish={"name": "gate", "version": version})
    async with come_in(own_shop, "rui", "lead") as rui:
        refused = await rui.post("/console/changes/1", data={"act": "approve"})
    assert refused.status_code == 403
    assert "made a link that signs <code>rui</code> in: another person approves" in refused.text
    assert "Your role does not include it" not in refused.text


async def test_who_approves_settings_sees_what_they_are_now(own_shop: Shop) -> None:
    await need_two(own_shop)
    await proposed(own_shop, settings={"thresholds": {"deny": 0.7}, "retention_days": 30})
    (seen,) = articles((await own_shop.browser.get("/console/changes")).text)
    assert "<code>thresholds.deny</code> <del>0.85</del> <ins>0.7</ins>" in seen
    assert re.search(r"<code>retention_days</code> <del>\d+</del> <ins>30</ins>", seen)
    assert "thresholds.challenge" not in seen


async def test_who_approves_entries_sees_which_payments_had_them(own_shop: Shop) -> None:
    text = await text_of(own_shop)
    asked = (
        "  list risky: string\n  condition known when device.fingerprint.id in @risky then deny\n"
    )
    await version_of(own_shop, text + asked, "rules/gate")
    api = own_shop.service.client
    assert (await api.put("/v1/rules/gate/active", json={"version": 2})).status_code == 200
    await need_two(own_shop)
    await proposed(own_shop, entries={"name": "risky", "entries": [{"value": "d-1"}]})
    (seen,) = articles((await own_shop.browser.get("/console/changes")).text)
    assert re.search(r"In the last 7 days \d+ payments had one of the first 1 values", seen)


async def test_who_signs_what_was_published_alone_sees_until_when_it_holds(own_shop: Shop) -> None:
    await need_two(own_shop)
    text = (await text_of(own_shop)).replace("100.00", "90.00")
    version = await version_of(own_shop, text)
    await proposed(own_shop, publish={"name": "gate", "version": version})
    alone = {"act": "alone", "until": "6h", "reason": "nobody is awake"}
    assert (await own_shop.browser.post("/console/changes/1", data=alone)).status_code == 303
    (seen,) = articles((await own_shop.browser.get("/console/changes")).text)
    until = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]["until"]
    assert f'<dt>In force until</dt><dd><time datetime="{until}"' in seen
