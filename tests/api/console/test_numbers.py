"""Every number that counts payments leads to them, and as many are there."""

from __future__ import annotations

import re
from asyncio import sleep
from collections.abc import AsyncIterator
from html import unescape

import pytest

from tollkeeper.api.console.page import NAVIGATION
from tollkeeper.api.http.settings import Settings
from tollkeeper.tests.api.console.conftest import RULE, Shop, open_shop
from tollkeeper.tests.api.http.service import payment

pytestmark = pytest.mark.anyio

ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
WATCH = """event payment
  metric seen = count(payments by merchant.id over 1h)
  monitor burst "Many payments of one merchant" when seen >= 3 by merchant.id
"""
PATIENT = Settings(key_work=10_000, account_work=10_000, account_changes=10_000)
COUNTED = {
    "/console": 10,
    "/console/alerts/ALERT": 12,
    "/console/backtests/BACKTEST": 0,
    "/console/came-back": 0,
    "/console/contain": 8,
    "/console/lists/blocked?hits=1": 1,
    "/console/payments/order-1": 10,
    "/console/report": 10,
    "/console/review": 1,
    "/console/rules": 3,
    "/console/rules/gate": 4,
    "/console/score": 40,
}
"""Pages that count payments, and how many of their numbers at least lead to them."""
_LINK = r'<a href="(/console/(?:payments\?|came-back)[^"]*)">([\d\u202f]+)</a>'
ELSEWHERE = {
    # Means of weeks, which no search finds.
    "Usually",
    "An hour of the week",
    # Of a version that decided none of them; examples stand beside.
    "Would be decided otherwise",
}
"""Numbers in tables that lead nowhere, with their row where others of the column do, and why."""
OF_BACKTESTS = {
    # What a version would have decided, which no search finds.
    "/console/backtests/BACKTEST": {"Payments", "Met", "Would meet"},
    "/console/changes": {"Payments"},
}
LISTED = RULE.replace(
    "  condition large",
    '  list blocked: string\n  condition known "Blocked"\n    when device.fingerprint.id in @blocked\n'
    "    then deny\n  condition large",
)


@pytest.fixture(scope="module")
async def busy_shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """A shop with verdicts, a version on trial and an alert."""
    async with open_shop(tmp_path_factory.mktemp("busy")) as shop:
        api = shop.service.client
        for path, text in (("event-types/payment", WATCH), ("rules/gate", LISTED)):
            stored = await api.post(f"/v1/{path}/versions?publish=true", content=text)
            assert stored.status_code in (200, 201), stored.text
        tried = await api.post("/v1/rules/gate/versions", content=LISTED.replace("100", "250"))
        version = {"version": tried.json()["rule"]["version"]}
        assert (await api.put("/v1/rules/gate/shadow", json=version)).status_code == 200
        for number in range(8):
            body = payment(id=f"busy-{number}", amount=100 * number, analyze=ASKED)
            assert (await api.post("/v1/payments", json=body)).status_code == 201
            if number % 3:
                label = {"label": "fraud" if number % 2 else "legitimate"}
                path = f"/v1/payments/busy-{number}/labels/review"
                assert (await api.put(path, json=label)).status_code == 200
        blocked = {"entries": [{"value": "d-1"}]}
        assert (await api.put("/v1/lists/blocked/entries", json=blocked)).is_success
        sent = {"proposal": {"note": "a sale", "publish": {"name": "gate", **version}}}
        sent["proposal"]["backtest"] = await backtest_of(shop, version["version"])
        assert (await api.post("/v1/proposals", json=sent)).status_code == 201
        yield shop


async def backtest_of(shop: Shop, version: int | None = None) -> str:
    """The id of the newest backtest that is done, or of one of this version."""
    api = shop.service.client
    if version is not None:
        asked = {"version": {"name": "gate", "version": version}, "since": "1d"}
        assert (await api.post("/v1/backtests", json=asked)).status_code == 202
    while (found := (await api.get("/v1/backtests")).json()["backtests"][0])["state"] != "done":
        await sleep(0.05)
    id_: str = found["id"]
    return id_


async def alert_of(shop: Shop) -> str:
    while not (alerts := (await shop.service.client.get("/v1/alerts")).json()["alerts"]):
        await sleep(0.02)
    id_: str = alerts[0]["id"]
    return id_


@pytest.mark.parametrize("address", sorted({*COUNTED, *(each for _, each, _ in NAVIGATION)}))
async def test_every_number_on_a_page_is_the_number_of_payments_behind_its_link(
    busy_shop: Shop, address: str
) -> None:
    where = address.replace("ALERT", await alert_of(busy_shop))
    where = where.replace("BACKTEST", await backtest_of(busy_shop))
    async with busy_shop.service.client_with(None, PATIENT) as browser:
        browser.headers["cookie"] = busy_shop.browser.headers["cookie"]
        page = (await browser.get(where)).text
        links = set(re.findall(_LINK, page))
        for link, number in links:
            found = (await browser.get(unescape(link))).text
            count = re.search(r'id="count" role="status">([^<]+) payments?<', found)
            assert count is not None, link
            assert count[1] == number, link
        assert len(links) >= COUNTED.get(address, 0)
        assert unlinked(page) - ELSEWHERE == OF_BACKTESTS.get(address, set())


def unlinked(page: str) -> set[str]:
    """Where whole numbers in tables lead nowhere: `TITLE`, or `FIRST CELL: TITLE` where others lead."""
    bare: dict[str, set[str]] = {}
    led = set()
    for table in re.findall(r"<table.*?</table>", page, re.DOTALL):
        titles = re.findall(r"<th[^>]*>(.*?)</th>", table)
        for row in re.findall(r"<tr[^>]*><td.*?</tr>", table, re.DOTALL):
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
            for title, cell in zip(titles, cells, strict=True):
                if re.fullmatch(r"(<span[^>]*>)?[\d\u202f]+(</span>)?", cell):
                    bare.setdefault(title, set()).add(re.sub("<[^>]+>", "", cells[0]))
                elif re.search(r">[\d\u202f]+</a>", cell):
                    led.add(title)
    return {
        f"{first}: {title}" if title in led else title for title in bare for first in bare[title]
    }
