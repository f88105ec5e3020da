"""What the pages count, beside a plain recount of the payments."""

from __future__ import annotations

import csv
import re
from collections import Counter
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from httpx import Response

from tollkeeper.tests.api.console.conftest import Shop
from tollkeeper.tests.api.http.service import payment

pytestmark = pytest.mark.anyio

ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
PAID = {
    "status": "succeeded",
    "connector": {"id": "c", "response_code": "00"},
}
CHALLENGING = """rule gate "What comes through"
  condition huge "A huge amount"
    when amount > 300.00
    then deny
  condition large "A large amount"
    when amount > 100.00
    then challenge
"""
VERDICTS = ("fraud", "fraud", "legitimate", "fraud")


def cells(page: str, row: str, of: str = "") -> list[str]:
    """The texts of the first row that holds `row`, in the table `of` this caption or in any."""
    after = page[page.index(f'aria-label="{of}"') :] if of else page
    found = next(each for each in re.findall(r"<tr[ >].*?</tr>", after, re.DOTALL) if row in each)
    parts = re.findall(r"<td[^>]*>(.*?)</td>", found, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", part).strip() for part in parts]


async def sell(shop: Shop) -> list[dict[str, Any]]:
    """Payments of several amounts and ends, some of them labelled: as the interface finds them."""
    api = shop.service.client
    for number in range(12):
        body = payment(id=f"sale-{number}", amount=50 * number, analyze=ASKED, currency="EUR")
        assert (await api.post("/v1/payments", json=body)).status_code == 201
        if number % 3 == 0:
            paid = {"status": "succeeded", "transactions": [PAID]}
            answer = await api.patch(f"/v1/payments/sale-{number}", json={"payment": paid})
            assert answer.status_code == 200, answer.text
    for number, verdict in enumerate(VERDICTS):
        path = f"/v1/payments/sale-{number + 3}/labels/review"
        assert (await api.put(path, json={"label": verdict})).status_code == 200
    found: list[dict[str, Any]] = (await api.get("/v1/payments?limit=100")).json()["payments"]
    return found


async def test_each_figure_of_the_report_is_a_plain_recount(own_shop: Shop) -> None:
    sold = await sell(own_shop)
    page = (await own_shop.browser.get("/console/report")).text
    decided = cells(page, "not final", "What was decided")
    known = cells(page, "not final", "What became known")
    actions = Counter(each["analyses"]["bot_behaviour"]["action"] for each in sold)
    statuses = Counter(each["status"] for each in sold)
    fraud = sum(each["label"] == "fraud" for each in sold)

    def share(count: int) -> str:
        return f"{100 * count / len(sold):.0f}\u202f%"

    def amount(label: str | None = None) -> Decimal:
        of = [each for each in sold if label in (None, each["label"])]
        return sum((Decimal(str(e["amount"])) for e in of if e["currency"] == "EUR"), Decimal(0))

    def shown(value: Decimal) -> str:
        return f"{value:,.2f}\u00a0EUR".replace(",", "\u202f")

    challenged = [
        each["status"]
        for each in sold
        if each["analyses"]["bot_behaviour"]["action"] == "challenge"
    ]
    passed = f"{100 * challenged.count('succeeded') / len(challenged):.0f}\u202f%"
    assert decided[1] == str(len(sold))
    assert shown(amount()) in decided[2]
    assert decided[3:] == [
        share(actions["deny"]),
        share(actions["challenge"]),
        passed,
        share(statuses["succeeded"]),
    ]
    assert known[1:3] == [str(fraud), f"{100 * fraud / len(sold):.2f}\u202f%"]
    assert shown(amount("fraud")) in known[3]
    assert f"{100 * amount('fraud') / amount():.2f}\u202f% EUR" in known[4]
    assert known[5:] == ["0", "0.00\u202f%"]


async def test_the_file_of_the_report_has_counts_and_amounts_without_a_languages_signs(
    own_shop: Shop,
) -> None:
    sold = await sell(own_shop)
    headers = {"accept-language": "pt-BR"}
    file = await own_shop.browser.get("/console/report.csv", headers=headers)
    (month,) = csv.DictReader(file.text.splitlines())
    actions = Counter(each["analyses"]["bot_behaviour"]["action"] for each in sold)
    assert re.fullmatch(r"20\d\d-\d\d", month["month"])
    assert month["final"] == "no"
    assert month["payments"] == str(len(sold))
    assert (month["denied"], month["challenged"]) == (
        str(actions["deny"]),
        str(actions["challenge"]),
    )
    assert month["fraud"] == str(sum(each["label"] == "fraud" for each in sold))
    for currency in {each["currency"] for each in sold}:
        of = [each for each in sold if each["currency"] == currency]
        for title, counted in (
            ("money", of),
            ("fraud_money", [each for each in of if each["label"] == "fraud"]),
        ):
            total = sum((Decimal(str(each["amount"])) for each in counted), Decimal(0))
            assert Decimal(month[f"{title}_{currency}"]) == total


async def test_the_first_page_says_how_many_of_the_challenged_passed(own_shop: Shop) -> None:
    api = own_shop.service.client
    stored = await api.post("/v1/rules/gate/versions?publish=true", content=CHALLENGING)
    assert stored.status_code == 201, stored.text
    await sell(own_shop)
    found = (await api.get("/v1/payments?action=challenge&limit=100")).json()["payments"]
    passed = sum(each["status"] == "succeeded" for each in found)
    assert 0 < passed < len(found)
    page = (await own_shop.browser.get("/console")).text
    (shown,) = re.findall(r"<dt>Challenges passed</dt><dd>([^<]+)<", page)
    assert shown == f"{100 * passed / len(found):.0f}\u202f%"


async def test_disputes_of_a_merchant_are_those_of_its_payments_by_what_succeeded(
    own_shop: Shop,
) -> None:
    await sell(own_shop)
    api = own_shop.service.client
    for number, verdict in ((0, "fraud"), (3, "legitimate")):
        path = f"/v1/payments/sale-{number}/labels/chargeback"
        assert (await api.put(path, json={"label": verdict})).status_code == 200
    merchant = (await api.get("/v1/payments/sale-0")).json()["payment"]["merchant"]["id"]
    page = (await own_shop.browser.get("/console/report", params={"merchant": merchant})).text
    shown = cells(page, "not final", "What became known")
    assert shown[5:] == ["2", "50.00\u202f%"]  # of 4 that succeeded
    link = re.search(r'<a href="([^"]+labelled[^"]+)">2</a>', page)
    assert link is not None
    found = (await own_shop.browser.get(link[1].replace("&amp;", "&"))).text
    assert ">2 payments<" in found
    other = (await own_shop.browser.get("/console/report?merchant=nobody")).text
    assert "not final" not in other
    file = (await own_shop.browser.get("/console/report.csv?merchant=nobody")).text
    assert len(file.splitlines()) == 1


async def test_how_many_denials_are_wrong_is_a_range_of_what_each_source_knows(
    own_shop: Shop,
) -> None:
    page = (await own_shop.browser.get("/console/report?merchant=nobody")).text
    assert "Nobody knows yet" in page
    sold = await sell(own_shop)
    denied = [each for each in sold if each["analyses"]["bot_behaviour"]["action"] == "deny"]
    labels = Counter(each["label"] for each in denied)
    page = (await own_shop.browser.get("/console/report")).text
    reviewed = cells(page, "Reviews and chargebacks")
    known = labels["fraud"] + labels["legitimate"]
    assert reviewed[1:3] == [str(known), str(labels["legitimate"])]
    back = cells(page, "Came back")
    shares = [int(each[2]) / int(each[1]) for each in (reviewed, back)]
    low, high = (f"{100 * share:.0f}\u202f%" for share in (min(shares), max(shares)))
    assert f"Between {low} and {high} of denials are wrong" in page
    euros = sum(Decimal(str(each["amount"])) for each in denied if each["currency"] == "EUR")
    kept = [
        f"{euros * (1 - Decimal(share)):,.2f}".replace(",", "\u202f")
        for share in (max(shares), min(shares))
    ]
    assert cells(page, ">EUR<", "Kept away") == ["EUR", *kept]


async def test_those_who_came_back_are_led_to_from_the_report_and_from_the_rule(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    for number, amount in enumerate((500, 500, 50)):
        card = {"network": "visa", "presence": "card_not_present", "bin": "47020000"}
        body = payment(
            id=f"back-{number}",
            amount=amount,
            method={"type": "credit_card", "card": {**card, "last_four": f"{number:04}"}},
            user={"id": "u-ana" if number else "u-rui"},
            analyze=ASKED,
        )
        assert (await api.post("/v1/payments", json=body)).status_code == 201
    paid = {"payment": {"status": "succeeded", "transactions": [PAID]}}
    assert (await api.patch("/v1/payments/back-2", json=paid)).status_code == 200
    page = (await own_shop.browser.get("/console/report")).text
    known, wrong = re.findall(r'<a href="(/console/came-back[^"]*)">(\d+)</a>', page)
    assert [*ids_on(await own_shop.browser.get(unescape(wrong[0])))] == ["back-1"]
    assert wrong[1] == "1"
    every = [*ids_on(await own_shop.browser.get(known[0]))]
    assert {"back-0", "back-1", "order-1"} < {*every}
    assert len(every) == int(known[1])
    page = (await own_shop.browser.get("/console/rules/gate")).text
    (link,) = re.findall(r'<a href="(/console/came-back[^"]*)">', page)
    assert [*ids_on(await own_shop.browser.get(unescape(link)))] == ["back-1"]


def ids_on(page: Response) -> list[str]:
    """The payments on a page."""
    return [unescape(each) for each in re.findall(r'<tr data-id="([^"]+)"', page.text)]


async def test_the_report_counts_what_was_published_and_approved(own_shop: Shop) -> None:
    page = (await own_shop.browser.get("/console/report")).text
    link = re.search(r'Versions made live: <a href="([^"]+)">1</a>', page)
    assert link is not None
    log = (await own_shop.browser.get(unescape(link[1]))).text
    assert log.count(">made live</a>") == 1
    assert "Proposals approved" not in page


async def test_each_threshold_of_the_curve_is_a_plain_recount(own_shop: Shop) -> None:
    sold = await sell(own_shop)
    page = (await own_shop.browser.get("/console/score")).text
    for step in (50, 75, 95):
        above = [
            each for each in sold if each["analyses"]["bot_behaviour"]["score"] * 100 >= step - 0.5
        ]
        shown = cells(page, f">{step / 100:.2f}<", "If payments were denied from …")
        assert shown[1] == str(len(above))


async def test_precision_is_that_of_the_labels_that_were_given(own_shop: Shop) -> None:
    await sell(own_shop)
    page = (await own_shop.browser.get("/console/rules/gate")).text
    sure = [verdict for number, verdict in enumerate(VERDICTS) if 50 * (number + 3) > 100]
    share = 100 * sure.count("fraud") / len(sure)
    assert cells(page, ">large<")[5].startswith(f"{share:.0f}\u202f%")


async def test_a_burst_of_one_bin_is_the_first_mover_and_its_number_finds_its_payments(
    own_shop: Shop,
) -> None:
    api = own_shop.service.client
    for number in range(30):
        card = {"network": "visa", "presence": "card_not_present", "bin": "47020000"}
        body = payment(
            id=f"burst-{number}",
            method={"type": "credit_card", "card": {**card, "last_four": f"{number:04}"}},
            device={"ip_address": f"203.0.{number}.7", "fingerprint": fingerprint(number)},
            user={"id": f"u-{number}"},
            merchant={"id": f"m-{number % 9}"},
            amount=500,
            analyze=ASKED,
        )
        assert (await api.post("/v1/payments", json=body)).status_code == 201
    page = (await own_shop.browser.get("/console")).text
    movers = page.partition("What changed most")[2]
    assert cells(movers, "<td")[0] == "BIN 47020000"
    link = re.search(r'<a href="([^"]+)">30</a>', movers)
    assert link is not None
    found = (await own_shop.browser.get(link[1].replace("&amp;", "&"))).text
    assert ">30 payments<" in found
    assert "BIN 47020000: 30 payments in an hour, 100\u202f% denied" in page


def fingerprint(number: int) -> dict[str, str]:
    return {"id": f"d-{number}", "provider": "basic"}
