"""Two people work at once: nobody undoes unseen what the other did since the page was made."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tollkeeper.tests.api.console.conftest import RULE, Shop

pytestmark = pytest.mark.anyio


def form_of(page: str, action: str) -> dict[str, str]:
    """The fields of the first form with this action, as a browser would send them."""
    found = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page, re.DOTALL)
    assert found is not None, action
    fields = {}
    for tag in re.findall(r"<input[^>]*>", found[0]):
        name, value = (re.search(rf'{each}="([^"]*)"', tag) for each in ("name", "value"))
        is_sent = "checkbox" not in tag or "checked" in tag
        if name is not None and is_sent:
            fields[unescape(name[1])] = unescape(value[1]) if value else ""
    for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', found[0]):
        chosen = re.search(r'value="([^"]*)" selected', options)
        fields[name] = chosen[1] if chosen else re.search(r'value="([^"]*)"', options)[1]  # type: ignore[index]
    return fields


async def read(shop: Shop, address: str) -> str:
    return (await shop.browser.get(address)).text


async def test_settings_keep_what_another_changed_since_the_page_was_made(own_shop: Shop) -> None:
    api = own_shop.service.client
    seen = form_of(await read(own_shop, "/console/settings"), "/console/settings")
    theirs = {"account": {"thresholds": {"challenge": 0.4, "deny": 0.8}}}
    assert (await api.put("/v1/account", json=theirs)).status_code == 200
    mine = {**seen, "time_zone": "Europe/Berlin"}
    saved = await own_shop.browser.post("/console/settings", data=mine)
    assert saved.status_code == 303, saved.text
    account = (await api.get("/v1/account")).json()["account"]
    assert (account["time_zone"], account["thresholds"]["deny"]) == ("Europe/Berlin", 0.8)
    refused = await own_shop.browser.post("/console/settings", data={**seen, "deny": "0.9"})
    assert refused.status_code == 409
    assert "account.thresholds" in refused.text
    assert "somebody changed this after the page was made" in refused.text
    assert (await api.get("/v1/account")).json()["account"]["thresholds"]["deny"] == 0.8
    garbled = {**seen, "expected": "{"}
    assert (await own_shop.browser.post("/console/settings", data=garbled)).status_code == 422


async def test_a_version_is_not_made_live_over_one_that_another_made_live_meanwhile(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    for limit in ("90.00", "80.00"):
        text = RULE.replace("100.00", limit)
        assert (await api.post("/v1/rules/gate/versions", content=text)).status_code == 201
    page = await read(own_shop, "/console/rules/gate")
    form = {**form_of(page, "/console/rules/gate/active"), "version": "2"}
    editor = form_of(await read(own_shop, "/console/rules/gate/edit"), "/console/publish")
    assert (await api.put("/v1/rules/gate/active", json={"version": 3})).status_code == 200
    refused = await own_shop.browser.post("/console/rules/gate/active", data=form)
    assert refused.status_code == 409
    assert "v3 was made live after this page was made" in refused.text
    written = {**editor, "text": RULE.replace("100.00", "70.00"), "act": "publish"}
    refused = await own_shop.browser.post("/console/publish", data=written)
    assert refused.status_code == 409
    assert "v3 was made live after this page was made" in refused.text
    assert "amount &gt; 70.00" in refused.text
    assert (await api.get("/v1/rules/gate")).json()["rule"]["active"] == 3
    again = form_of(refused.text, "/console/publish")
    published = await own_shop.browser.post("/console/publish", data={**written, **again})
    assert published.status_code == 303
    assert (await api.get("/v1/rules/gate")).json()["rule"]["active"] == 4


async def test_a_saved_search_is_not_put_in_the_place_of_another_of_its_name(
    own_shop: Shop,
) -> None:
    browser = own_shop.browser
    mine = {"name": "attack", "q": "action:deny"}
    for _ in range(2):
        assert (await browser.post("/console/searches", data=mine)).status_code == 303
    other = await browser.post("/console/searches", data={**mine, "q": "action:challenge"})
    assert other.status_code == 409
    assert "another search has this name already" in other.text
    saved = (await own_shop.service.client.get("/v1/searches")).json()["searches"]
    assert saved == [{"name": "attack", "query": "action:deny"}]


async def test_a_block_for_some_hours_does_not_shorten_one_for_good(own_shop: Shop) -> None:
    path, api = "/v1/lists/blocked/entries", own_shop.service.client
    form = {"put": "device:blocked", "span": "", "note": "a ring"}
    for span, status in (("", 303), ("6h", 409), ("", 303)):
        sent = {**form, "span": span}
        answer = await own_shop.browser.post("/console/payments/order-1/list", data=sent)
        assert answer.status_code == status, answer.text
    (entry,) = (await api.get(path)).json()["entries"]
    assert entry.get("expires_at") is None
