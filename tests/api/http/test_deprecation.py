"""An operation that goes says so in its description and in every answer, six months before."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tollkeeper.api.http import app, document
from tollkeeper.api.http.operation import Answer, Deprecation, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.tests.api.http.service import Service

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
ANNOUNCED, STOPS = datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 7, 1, tzinfo=UTC)
GOES = Deprecation(ANNOUNCED, STOPS, "https://docs.example/instead")
HEADERS = {
    "deprecation": "@1798761600",
    "sunset": "Thu, 01 Jul 2027 00:00:00 GMT",
    "link": '<https://docs.example/instead>; rel="deprecation"',
}


class OldAnswer(Struct, frozen=True):
    """What the operation that goes answers."""

    done: bool


@operation(
    "GET",
    "/v1/old",
    "read_old",
    tag=ACCOUNT,
    summary="Read as before",
    doc="As it was.",
    scope="any",
    answers={200: Answer("As before.")},
    deprecated=GOES,
)
async def read_old(request: Request) -> OldAnswer:
    return OldAnswer(request.key.account > 0)


@pytest.mark.anyio
async def test_every_answer_of_an_operation_that_goes_says_since_when_and_until_when(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "ROUTES", (*ROUTES, read_old))
    key = await service.key("shop", "payments:read")
    for asked, status in ((key, 200), ("wrong", 401)):
        async with service.client_with(asked) as client:
            answer = await client.get("/v1/old")
            other = await client.get("/v1/account")
        assert answer.status_code == status, answer.text
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert not HEADERS.keys() & other.headers.keys()


def test_the_document_says_of_an_operation_that_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "ROUTES", (*ROUTES, read_old))
    described: dict[str, Any] = document.document.__wrapped__()["paths"]
    old = described["/v1/old"]["get"]
    assert old["deprecated"] is True
    assert old["description"].startswith(
        "Deprecated since 2027-01-01; it stops on 2027-07-01. "
        "[What takes its place](https://docs.example/instead)."
    )
    assert "deprecated" not in described["/v1/payments"]["post"]


def test_nothing_goes_sooner_than_the_page_for_merchants_promises() -> None:
    assert "announced six months before" in PAGE.read_text()
    with pytest.raises(ValueError, match="six months"):
        Deprecation(ANNOUNCED, datetime(2027, 6, 1, tzinfo=UTC), "https://docs.example/instead")


def test_what_goes_is_listed_on_the_page_for_merchants() -> None:
    going = [route.operation_id for route in ROUTES if route.opt["deprecated"]]
    said = re.search(r"Nothing is deprecated at present", PAGE.read_text()) is None
    assert bool(going) == said
