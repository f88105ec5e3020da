"""What a page says after a version was published: what it is warned of, and when it is live."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tollkeeper.api.http import publishing
from tollkeeper.tests.api.console.conftest import RULE, Shop
from tollkeeper.tests.api.http.late_proofs import PROMISED, leave_no_time_for_proofs

pytestmark = pytest.mark.anyio

LISTED = """rule gate
  list risky: string
  condition large when amount > 100.00 then deny
  condition known when user.id in @risky then deny
  condition dear when amount > 200.00 then challenge
"""
_WARNED = re.compile(r'<div class="notice warning" role="status">(.*?)</div>', re.DOTALL)


async def page_after(shop: Shop, address: str, **form: str) -> str:
    """The page that follows a form, with its text as people read it."""
    answer = await shop.browser.post(address, data=form)
    assert answer.status_code == 303, answer.text
    return unescape((await shop.browser.get(answer.headers["location"])).text)


async def test_whoever_publishes_reads_what_the_version_is_warned_of_on_the_page_that_follows(
    own_shop: Shop,
) -> None:
    form = {"name": "gate", "expected": "1", "text": LISTED, "act": "publish", "reason": "a"}
    page = await page_after(own_shop, "/console/publish", **form)
    (warned,) = _WARNED.findall(page)
    assert "What v2 is warned of:" in warned
    assert "<code>@risky</code> has no entries yet" in warned
    assert '<span class="place">5:' in warned
    for version in ("1", "2"):
        form = {"version": version, "reason": "", "until": ""}
        page = await page_after(own_shop, "/console/rules/gate/active", **form)
        (warned,) = _WARNED.findall(page)
        assert f"What v{version} is warned of:" in warned
        assert ("@risky" in warned) == (version == "2")
    assert _WARNED.findall((await own_shop.browser.get("/console/rules/gate")).text) == []


async def test_the_editor_tells_of_a_list_without_entries_and_underlines_nothing_for_it(
    shop: Shop,
) -> None:
    form = {"text": LISTED}
    told = unescape((await shop.browser.post("/console/check", data=form)).text)
    assert "<code>@risky</code> has no entries yet" in told
    underlined = (await shop.browser.post("/console/check.json", data=form)).json()["diagnostics"]
    assert "empty-list" not in {each["code"] for each in underlined}


async def test_whoever_publishes_reads_that_not_all_of_it_was_tried(
    own_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_no_time_for_proofs(monkeypatch)
    form = {"name": "gate", "expected": "1", "text": PROMISED, "act": "publish", "reason": "a"}
    page = await page_after(own_shop, "/console/publish", **form)
    assert "There was no time to try all of its <code>must</code> lines" in page


async def test_whoever_publishes_reads_that_not_all_of_it_was_decided(own_shop: Shop) -> None:
    text = PROMISED.replace("when amount < 100.00", r"when user.email matches /\bbot\b/")
    form = {"name": "gate", "expected": "1", "text": text, "act": "publish", "reason": "a"}
    page = await page_after(own_shop, "/console/publish", **form)
    assert "Some of its <code>must</code> lines are neither proved nor refuted" in page


@pytest.mark.parametrize(
    "query",
    ["published=99", "active=-1", "published=<script>", f"published={'9' * 5000}", "untried=1"],
)
async def test_an_address_that_somebody_made_up_warns_of_nothing(shop: Shop, query: str) -> None:
    answer = await shop.browser.get(f"/console/rules/gate?{query}")
    assert answer.status_code == 200
    assert "notice warning" not in answer.text
    assert "<script>" not in answer.text


async def test_a_version_whose_windows_are_still_filled_is_not_called_live(
    own_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = own_shop.service.client
    text = RULE.replace("100.00", "90.00")
    assert (await api.post("/v1/rules/gate/versions", content=text)).status_code == 201
    monkeypatch.setattr(publishing, "PUBLISH_SECONDS", 0.0)
    form = {"version": "2", "reason": "", "until": ""}
    engine = own_shop.service.engine
    async with engine.publishing[1]:  # as while it is filled
        engine.filling[1, "rule", "gate"] = 0.4
        page = await page_after(own_shop, "/console/rules/gate/active", **form)
        assert "v1 is live" in page
        assert "v2 is live once its windows are filled" in page
        assert "40\u202f%" in page


async def test_a_rollout_ends_by_the_button_that_says_so(own_shop: Shop) -> None:
    begun = {"version": "1", "percent": "10", "by": "user"}
    page = await page_after(own_shop, "/console/rules/gate/rollout", **begun)
    (button,) = re.findall(r'<button name="(\w+)" value="\w*" class="quiet">End rollout<', page)
    form = {**begun, button: "1"}  # a form is sent whole
    await page_after(own_shop, "/console/rules/gate/rollout", **form)
    found = (await own_shop.service.client.get("/v1/rules/gate")).json()["rule"]
    assert found["rollout"] is None
