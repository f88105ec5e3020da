"""A version that is published until a time, and what is back then: to the moment, over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.publish.end_publications import end_due
from tollkeeper.tests.api.http.service import NOW, Service, errors, open_service, payment

pytestmark = pytest.mark.anyio

HOUR = 3_600_000_000
LASTING = """rule gate
  condition busy when count(payments by user.id over 7d) > 2 then deny
  otherwise allow
"""
PASSING = """rule gate
  condition all when amount > 0 then deny
"""
ASKED = {"rule": {"name": "gate"}, "bot_behaviour": True}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def publish(service: Service, text: str, **query: str) -> Any:
    address = "/v1/rules/gate/versions"
    return await service.client.post(address, content=text, params={"publish": "true", **query})


async def decided(service: Service) -> tuple[str, int | None]:
    answer = await service.client.post("/v1/payments", json=payment(analyze=ASKED, timestamp=None))
    analyses = answer.json()["payment"]["analyses"]
    rule = analyses["rule"]
    return analyses["bot_behaviour"]["action"], rule and rule["version"]


def at(service: Service, moment: int) -> None:
    service.engine.clock = lambda: moment


async def test_the_former_version_decides_again_to_the_microsecond_with_its_windows_whole(
    service: Service,
) -> None:
    assert (await publish(service, LASTING)).status_code == 201
    assert await decided(service) == ("allow", 1)
    assert (await publish(service, PASSING, until="6h", reason="an attack")).status_code == 201
    rule = (await service.client.get("/v1/rules/gate")).json()["rule"]
    assert (rule["active"], rule["former"], rule["until"]) == (2, 1, "2026-09-10T06:26:40Z")
    at(service, NOW + 6 * HOUR - 1)
    assert await decided(service) == ("deny", 2)
    at(service, NOW + 6 * HOUR)
    # Nothing has noted the end yet, and the payments of the meantime were counted.
    assert await decided(service) == ("deny", 1)
    await end_due(service.engine)
    assert await decided(service) == ("deny", 1)
    rule = (await service.client.get("/v1/rules/gate")).json()["rule"]
    assert (rule["active"], rule["former"], rule["until"]) == (1, None, None)
    ended, begun = (await service.client.get("/v1/audit")).json()["audit"][:2]
    assert (ended["by"], ended["detail"]) == ("tollkeeper", {"version": 1, "ended": True})
    assert begun["detail"]["reason"] == "an attack"
    assert begun["detail"]["until"] == "2026-09-10T06:26:40Z"


async def test_a_clock_that_jumped_ahead_ends_it_only_for_as_long_as_it_is_ahead(
    service: Service,
) -> None:
    await publish(service, LASTING)
    await publish(service, PASSING, until="6h")
    at(service, NOW + 9 * HOUR)
    service.engine.clock_watch.doubt = "the clock is 9 hours ahead"
    assert (await decided(service))[1] == 1
    await end_due(service.engine)
    at(service, NOW + HOUR)
    service.engine.clock_watch.doubt = None
    assert (await decided(service))[1] == 2
    at(service, NOW + 6 * HOUR)
    await end_due(service.engine)
    assert (await service.client.get("/v1/rules/gate")).json()["rule"]["until"] is None


async def test_where_nothing_was_published_before_nothing_is_afterwards(service: Service) -> None:
    assert (await publish(service, PASSING, until="1h")).status_code == 201
    at(service, NOW + HOUR)
    assert (await decided(service))[1] is None
    await end_due(service.engine)
    assert (await service.client.get("/v1/rules/gate")).json()["rule"]["active"] is None
    (ended, *_) = (await service.client.get("/v1/audit")).json()["audit"]
    assert (ended["action"], ended["detail"]) == ("deactivated", {"ended": True})


async def test_what_goes_back_goes_back_to_what_was_meant_for_good(service: Service) -> None:
    await publish(service, LASTING)
    await publish(service, PASSING, until="6h")
    await publish(service, PASSING.replace("> 0", "> 1"), until="2h")
    at(service, NOW + 2 * HOUR)
    assert await decided(service) == ("allow", 1)


async def test_a_version_published_for_good_meanwhile_has_no_end(service: Service) -> None:
    await publish(service, LASTING)
    await publish(service, PASSING, until="6h")
    kept = await service.client.put("/v1/rules/gate/active", json={"version": 2})
    assert kept.status_code == 200
    at(service, NOW + 6 * HOUR)
    await end_due(service.engine)
    assert await decided(service) == ("deny", 2)


async def test_the_shipped_scorecard_is_back_with_its_windows_whole(service: Service) -> None:
    text = "scorecard bot_behaviour\n  baseline 0.9\n"
    path = "/v1/scorecards/bot_behaviour/versions?publish=true&until=1h"
    stored = await service.client.post(path, content=text)
    assert stored.status_code == 201, stored.text

    async def score() -> float:
        answer = await service.client.post("/v1/payments", json=payment())
        found: float = answer.json()["payment"]["analyses"]["bot_behaviour"]["score"]
        return found

    assert await score() == 0.9
    at(service, NOW + HOUR)
    assert await score() != 0.9


async def test_an_end_during_a_stop_of_the_service_holds_from_the_first_payment(
    tmp_path: Path,
) -> None:
    async with open_service(tmp_path / "data") as service:
        await publish(service, LASTING)
        assert await decided(service) == ("allow", 1)
        await publish(service, PASSING, until="6h")
    async with open_service(tmp_path / "data") as service:
        assert await decided(service) == ("deny", 2)
    async with open_service(tmp_path / "data") as service:
        at(service, NOW + 7 * HOUR)
        assert await decided(service) == ("deny", 1)
        await end_due(service.engine)
        await end_due(service.engine)
        audit = (await service.client.get("/v1/audit")).json()["audit"]
        assert [each["detail"].get("ended") for each in audit].count(True) == 1


@pytest.mark.parametrize(
    ("until", "type_"),
    [
        ("yesterday", "invalid_format"),
        ("0h", "invalid_format"),
        ("2026-09-10T00:26:40Z", "out_of_range"),
    ],
)
async def test_an_end_that_is_none_is_refused(service: Service, until: str, type_: str) -> None:
    assert errors(await publish(service, PASSING, until=until)) == [("until", type_)]


async def test_what_is_active_for_good_and_what_decides_nothing_have_no_end(
    service: Service,
) -> None:
    await publish(service, LASTING)
    chosen = {"version": 1, "until": "1h"}
    answer = await service.client.put("/v1/rules/gate/active", json=chosen)
    assert errors(answer) == [("until", "conflict")]
    text = "definitions amounts\n  let big = amount > 100\n"
    path = "/v1/definitions/amounts/versions?publish=true&until=1h"
    answer = await service.client.post(path, content=text)
    assert errors(answer) == [("until", "invalid_value")]


async def test_a_reason_is_one_line_of_a_length_that_people_read(service: Service) -> None:
    for reason in ("x" * 501, "two\nlines"):
        answer = await publish(service, LASTING, reason=reason)
        assert errors(answer) == [("reason", "invalid_format")]
