"""A path is one of those described, exactly; its methods answer alike wherever they are."""

from __future__ import annotations

import re

import httpx
import pytest

from tollkeeper.api.http.document import document
from tollkeeper.api.http.settings import Settings
from tollkeeper.tests.api.http.service import Service, errors, payment

pytestmark = pytest.mark.anyio

RULE = "rule checkout\n  condition large when amount > 100 then deny\n"


def paths() -> list[tuple[str, set[str]]]:
    """Each path with something in the place of its parameters, and the methods it has."""
    return [
        (re.sub(r"\{\w+\}", "1", path), {method.upper() for method in methods})
        for path, methods in document()["paths"].items()
    ]


def allowed(methods: set[str]) -> set[str]:
    return methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())


NOWHERE = [
    "/v1/payments/",
    "/v1/payments/p-1/",
    "/v1/payments//",
    "/v1/payments//p-1",
    "/v1//payments",
    "/v1//payments/p-1",
    "//v1/payments",
    "/v1/paymentsp-1",
    "/v1/payments/p-1/explanation/",
    "/v1/payments/p-1/elsewhere",
    "/v1/rules/",
    "/v1//rules",
    "/v1/rules/checkout/",
    "/v1/rules/checkout/versions/1/",
    "/v1/rules/checkout//active",
    "/health/live/",
    "/schema/",
    "/",
    "//",
    "/v1",
    "/V1/payments",
    "/v1/p%61yments",
]


async def test_a_path_that_is_not_described_is_404(service: Service) -> None:
    await service.client.post("/v1/payments", json=payment(id="p-1"))
    await service.client.post("/v1/rules/checkout/versions", content=RULE)
    for path in NOWHERE:
        for method in ("GET", "POST", "OPTIONS"):
            answer = await service.client.request(method, f"http://test{path}")
            assert answer.status_code == 404, (method, path)
            assert errors(answer) == [("path", "not_found")], (method, path)


async def test_every_path_refuses_other_methods_with_all_that_it_has(service: Service) -> None:
    for path, methods in paths():
        for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "TRACE", "MADEUP"}:
            if method in allowed(methods):
                continue
            answer = await service.client.request(method, path)
            assert answer.status_code == 405, (method, path)
            assert set(answer.headers["allow"].split(", ")) == allowed(methods), path
            if method != "HEAD":
                (item,) = answer.json()["errors"]
                assert (item["field"], item["type"]) == ("method", "method_not_allowed")
                assert item["message"] == f"use {answer.headers['allow']} here"


async def test_every_path_says_which_methods_it_has(service: Service) -> None:
    async with service.client_with(None) as stranger:
        for path, methods in paths():
            answer = await stranger.options(path)
            assert (answer.status_code, answer.content) == (204, b""), path
            assert set(answer.headers["allow"].split(", ")) == allowed(methods), path


async def test_head_answers_as_get_does_without_a_body(service: Service) -> None:
    await service.client.post("/v1/payments", json=payment(id="1"))
    await service.client.post("/v1/rules/1/versions", content=RULE.replace("checkout", "1"))
    statuses = set()
    for path, methods in paths():
        if "GET" not in methods or path in ("/metrics", "/v1/decisions/stream"):
            continue
        whole = await service.client.get(path)
        head = await service.client.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        for answer in (head, whole):
            assert answer.headers.pop("x-request-id")
        # Each of the two took something of what the key may ask for.
        moving = {"ratelimit-remaining", "ratelimit-reset"}
        assert _without(head.headers, moving) == _without(whole.headers, moving), path
        assert int(head.headers["content-length"]) == len(whole.content)
        statuses.add(head.status_code)
    assert {200, 404} <= statuses


async def test_head_needs_the_key_that_get_needs(service: Service) -> None:
    async with service.client_with(None) as stranger:
        assert (await stranger.head("/v1/rules")).status_code == 401
        assert (await stranger.head("/health/live")).status_code == 200


async def test_a_name_in_a_path_is_decoded(service: Service) -> None:
    await service.client.post("/v1/rules/checkout/versions", content=RULE)
    for escaped in ("check%6Fut", "%63heckout"):
        answer = await service.client.get(f"/v1/rules/{escaped}")
        assert answer.json()["rule"]["name"] == "checkout"


async def test_a_name_that_no_file_can_have_is_404_to_read_and_422_to_store(
    service: Service,
) -> None:
    answer = await service.client.get("/v1/rules/a%2Fb")
    assert (answer.status_code, errors(answer)[0][1]) == (404, "not_found")
    assert "`a/b`" in answer.text
    answer = await service.client.put("/v1/lists/a%2Fb", json={"type": "string"})
    assert (answer.status_code, errors(answer)) == (422, [("list.name", "invalid_format")])
    answer = await service.client.post(
        "/v1/rules/a%2Fb/versions", content=RULE.replace("checkout", "a")
    )
    assert answer.status_code == 422


async def test_a_name_that_is_not_utf8_is_nowhere(service: Service) -> None:
    for path in ("/v1/rules/%ff", "/v1/lists/%C3%28/entries"):
        answer = await service.client.get(path)
        assert (answer.status_code, errors(answer)) == (404, [("path", "not_found")]), path


async def test_a_versions_number_is_digits_alone(service: Service) -> None:
    await service.client.post("/v1/rules/checkout/versions", content=RULE)
    base = "/v1/rules/checkout/versions"
    assert (await service.client.get(f"{base}/1")).status_code == 200
    for number in ("x", "-1", "+1", "1_0", "0_1", "0x1", "1" * 5000, "%31%20", "1.0", "²"):
        answer = await service.client.get(f"{base}/{number}")
        assert (answer.status_code, errors(answer)[0][1]) == (404, "not_found"), number


async def test_a_query_parameter_that_is_none_is_refused_at_its_name(service: Service) -> None:
    asked = "/v1/rules/checkout/versions?publish=maybe"
    async with service.client_with(None) as stranger:
        assert (await stranger.post(asked, content=RULE)).status_code == 401
    for query in ("publish=maybe", "expected=newest", "expected=-1", "breaking=7", "publish="):
        answer = await service.client.post(f"/v1/rules/checkout/versions?{query}", content=RULE)
        name = query.partition("=")[0]
        assert (answer.status_code, errors(answer)) == (422, [(name, "invalid_value")]), query


async def test_a_query_parameter_is_given_once_unless_several_are_read(service: Service) -> None:
    answer = await service.client.get("/v1/payments?action=deny&limit=5&limit=6&action=allow")
    assert (answer.status_code, errors(answer)) == (422, [("limit", "invalid_value")])
    several = await service.client.get("/v1/event-types/none/metrics/none?key=u-1&key=u-2")
    assert several.status_code == 404


def _without(headers: httpx.Headers, names: set[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


@pytest.mark.parametrize("console", ["on", "off"])
async def test_whoever_opens_the_address_is_told_where_to_go(
    service: Service, console: str
) -> None:
    async with service.client_with(None, Settings(console=console)) as stranger:
        answer = await stranger.get("/")
        assert (answer.status_code, errors(answer)) == (404, [("path", "not_found")])
        places = re.findall("`(/[^`]*)`", answer.json()["errors"][0]["message"])
        assert places == ["/v1", "/schema", *(["/console"] if console == "on" else [])]
        assert (await stranger.get("/schema")).status_code == 200
