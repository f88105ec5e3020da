"""What changed in meaning between two versions, over HTTP."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from tollkeeper.tests.api.http.service import Service, errors

PATIENCE_S = 10.0

pytestmark = pytest.mark.anyio

FIRST = """rule gate
  condition large when amount > 1000 then challenge
"""
SECOND = """rule gate
  # Half of it is much as well.
  condition large when amount > 500 then deny
  condition night when hour(timestamp) < 6 then challenge
"""
TEXTS = {
    "rules/gate": (FIRST, SECOND),
    "scorecards/bot_behaviour": (
        "scorecard bot_behaviour\n  baseline 0.1\n  signal big adds 0.5 when amount > 9\n",
        "scorecard bot_behaviour\n  baseline 0.2\n  signal big adds 0.5 when amount > 9\n",
    ),
    "event-types/sign_in": (
        "event sign_in\n  field user: string required\n",
        "event sign_in\n  field user: string required\n  field ip: ip\n",
    ),
    "definitions/amounts": (
        "definitions amounts\n  let large = amount > 100\n",
        "definitions amounts\n  let large = amount > 200\n",
    ),
}


async def store(service: Service, file: str) -> None:
    for text in TEXTS[file]:
        answer = await service.client.post(f"/v1/{file}/versions", content=text)
        assert answer.status_code == 201, answer.text


async def differences(service: Service, file: str, **asked: int) -> list[dict[str, Any]]:
    answer = await service.client.get(f"/v1/{file}/diff", params=asked)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["differences"]
    return found


async def test_a_rules_differences_are_told_in_the_authors_words(service: Service) -> None:
    await store(service, "rules/gate")
    found = await differences(service, "rules/gate", **{"from": 1, "to": 2})
    assert [(each["change"], each["what"], each["aspect"]) for each in found] == [
        ("added", "condition `night`", None),
        ("changed", "condition `large`", "threshold"),
        ("changed", "condition `large`", "action"),
    ]
    assert (found[1]["before"], found[1]["after"]) == ("1000", "500")


async def test_the_newest_version_is_compared_with_the_one_before_it(service: Service) -> None:
    await store(service, "rules/gate")
    both = await differences(service, "rules/gate", **{"from": 1, "to": 2})
    assert await differences(service, "rules/gate") == both
    assert await differences(service, "rules/gate", to=1) == []
    back = await differences(service, "rules/gate", **{"from": 2, "to": 1})
    assert [each["change"] for each in back] == ["removed", "changed", "changed"]


@pytest.mark.parametrize("file", TEXTS)
async def test_every_kind_of_file_is_compared(service: Service, file: str) -> None:
    await store(service, file)
    assert len(await differences(service, file)) in (1, 3)


async def test_what_is_not_there_is_not_compared(service: Service) -> None:
    await store(service, "rules/gate")
    for path, refused in (
        ("rules/gate/diff?from=1&to=3", ("version", "not_found")),
        ("rules/gone/diff", ("name", "not_found")),
        ("rules/gate/diff?from=one", ("from", "invalid_value")),
    ):
        assert errors(await service.client.get(f"/v1/{path}")) == [refused]


async def test_versions_that_take_long_to_compare_hold_up_no_other_request(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(service, "rules/gate")
    answered = Event()

    def compare(*_: object) -> tuple[()]:
        assert answered.wait(PATIENCE_S)
        return ()

    monkeypatch.setattr("tollkeeper.api.http.differences.diff", compare)
    comparing = asyncio.create_task(differences(service, "rules/gate"))
    await asyncio.sleep(0)
    assert (await service.client.get("/v1/account")).status_code == 200
    answered.set()
    assert await comparing == []
