"""The OpenAPI document says what is served: no more, no less, and nothing else."""

from __future__ import annotations

import ast
import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import pytest
from litestar.handlers import HTTPRouteHandler

from tollkeeper.api.http import examples
from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.api.http.bodies import MAX_KEY
from tollkeeper.api.http.dispatch import described_path
from tollkeeper.api.http.document import document, statuses
from tollkeeper.api.http.error_answers import STATUSES, TYPES
from tollkeeper.api.http.file_kinds import FILE_KINDS, FileKind
from tollkeeper.api.http.notices import NOTICES
from tollkeeper.api.http.operation import JSON, TEXT, Operation, operation_of
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.engine.intake.violations import ViolationType
from tollkeeper.engine.openid.issuer import IssuerMetadata
from tollkeeper.engine.openid.providers import Provider
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.publish.accounts import CreateKey
from tollkeeper.engine.registry.scopes import SCOPES
from tollkeeper.tests.api.http.described import Witness, pointer, validator
from tollkeeper.tests.api.http.service import Service, payment

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "api.md"
SLOW = 202
"""Answered when a history takes half a minute to read, which no test has."""


@dataclass(frozen=True)
class Served:
    """A route with what was declared of it."""

    id: str
    method: str
    path: str
    route: HTTPRouteHandler
    operation: Operation


OPERATIONS = [
    Served(str(route.operation_id), method, described_path(path), route, operation_of(route))
    for route in ROUTES
    for path in route.paths
    for method in route.http_methods
]


def test_every_route_is_described() -> None:
    described = [
        (method.upper(), path)
        for path, methods in document()["paths"].items()
        for method in methods
    ]
    assert sorted(described) == sorted((each.method, each.path) for each in OPERATIONS)


def test_every_parameter_says_what_it_is_for() -> None:
    for methods in document()["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                assert "$ref" in parameter or parameter["description"], operation["operationId"]


@pytest.mark.anyio
async def test_an_idempotency_key_is_read_where_the_document_says_so(service: Service) -> None:
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "1", operation.path)
        headers = {"idempotency-key": "k" * (MAX_KEY + 1)}
        answer = await service.client.request(operation.method, path, headers=headers)
        refused = answer.status_code == 422 and '"idempotency-key"' in answer.text
        assert refused == operation.operation.repeatable, operation.id


@pytest.mark.anyio
async def test_a_key_is_needed_wherever_the_document_says_so(service: Service) -> None:
    async with service.client_with(None) as stranger:
        for operation in OPERATIONS:
            path = re.sub(r"\{\w+\}", "1", operation.path)
            answer = await stranger.request(operation.method, path)
            assert (answer.status_code == 401) == (operation.operation.scope is not None), (
                operation.id
            )


@pytest.mark.anyio
async def test_every_operation_needs_the_scope_that_it_names(service: Service) -> None:
    for scope in SCOPES:
        others = await service.key("shop", *(SCOPES.keys() - {scope}))
        async with (
            service.client_with(await service.key("shop", scope)) as one,
            service.client_with(others) as rest,
        ):
            for operation in OPERATIONS:
                if operation.operation.scope != scope:
                    continue
                path = re.sub(r"\{\w+\}", "1", operation.path)
                assert (await one.request(operation.method, path)).status_code != 403, operation.id
                assert (await rest.request(operation.method, path)).status_code == 403, operation.id


def test_the_document_is_valid_openapi() -> None:
    import schemathesis

    loaded = schemathesis.openapi.from_dict(msgspec.json.decode(msgspec.json.encode(document())))
    loaded.validate()


def test_the_document_says_what_a_webhook_is_sent() -> None:
    for kind, sent in document()["webhooks"].items():
        type_, _ = NOTICES[kind]
        content = sent["post"]["requestBody"]["content"][JSON]
        assert content["schema"] == {"$ref": f"#/components/schemas/{type_.__name__}"}
        (example,) = content["examples"].values()
        where = pointer("webhooks", kind, "post", "requestBody", "content", JSON, "schema")
        validator(where).validate(example["value"])
        assert msgspec.convert(example["value"], type_).kind == kind


def test_every_operation_has_its_own_id() -> None:
    ids = [operation.id for operation in OPERATIONS]
    assert len(set(ids)) == len(ids)


def test_every_type_of_error_is_explained_here_and_on_the_page_for_merchants() -> None:
    assert list(get_args(ViolationType)) == list(TYPES)
    page = PAGE.read_text()
    page = page[page.index("| type | meaning |") :].partition("\n\n")[0]
    table = re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert table == list(TYPES.items())
    assert all(status in STATUSES for each in OPERATIONS for status in statuses(each.operation))


def code() -> Iterator[ast.AST]:
    """Every node of the files that can make an error, the description of errors aside."""
    told = ("Violation", *(f'"{each}"' for each in TYPES))
    for folder in ("api", "engine"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if path.name != "error_answers.py" and any(each in text for each in told):
                yield from ast.walk(ast.parse(text))


def texts(node: ast.AST) -> list[str]:
    return [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def test_the_types_of_error_are_those_that_the_code_makes() -> None:
    named, listed, everywhere = set[str](), Counter[str](), Counter[str]()
    for node in code():
        match node:
            case ast.Call(func=ast.Name(id="Violation"), args=[_, type_, *_]):
                named.update(texts(type_))
            case ast.AnnAssign(target=ast.Name(id="ViolationType"), value=ast.expr() as value):
                listed.update(texts(value))
            case ast.Constant(value=str(value)):
                everywhere[value] += 1
    assert named <= set(TYPES)
    assert listed
    assert set(TYPES) <= set(everywhere - listed)


def json_contents() -> Iterator[tuple[str, Any]]:
    """The place of each JSON body of the document, and its description."""
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            at = ("paths", path, method)
            for place, holder in (
                (("requestBody",), operation.get("requestBody", {})),
                *((("responses", status), each) for status, each in operation["responses"].items()),
            ):
                if JSON in holder.get("content", {}):
                    where = pointer(*at, *place, "content", JSON)
                    yield where, holder["content"][JSON]
    for name, response in document()["components"]["responses"].items():
        where = pointer("components", "responses", name, "content", JSON)
        yield where, response["content"][JSON]


def test_every_example_fits_its_schema() -> None:
    checked = 0
    for where, content in json_contents():
        for example in content.get("examples", {}).values():
            validator(f"{where}/schema").validate(example["value"])
            checked += 1
    assert checked > len(OPERATIONS) // 2


def test_every_error_example_has_a_type_that_is_explained() -> None:
    for _, content in json_contents():
        for example in content.get("examples", {}).values():
            for item in example["value"].get("errors", []):
                assert item["type"] in TYPES or "-" in item["type"]


def test_a_file_of_an_event_type_is_called_so_wherever_kinds_of_files_are_named() -> None:
    named = [each for each in enums(document()) if "scorecard" in each and "definitions" in each]
    assert named
    assert all("event_type" in each and "event" not in each for each in named)


def enums(described: Any) -> Iterator[list[Any]]:
    match described:
        case {"enum": list(values)}:
            yield values
        case dict():
            for value in described.values():
                yield from enums(value)
        case list():
            for value in described:
                yield from enums(value)


VERSION = {"name": "checkout", "version": 1}
SAYABLE = [
    ("POST", "/v1/backtests", {}),
    ("POST", "/v1/backtests", {"text": "rule checkout", "version": VERSION}),
    ("POST", "/v1/backtests", {"text": "rule checkout", "since": "yesterday"}),
    ("POST", "/v1/proposals", {"proposal": {"note": "why"}}),
    ("POST", "/v1/proposals", {"proposal": {"note": "why", "publish": VERSION, "settings": {}}}),
    ("PUT", "/v1/account", {"account": {"rates": {"eur": {"USD": "1.1"}}}}),
    ("PUT", "/v1/account", {"account": {"rates": {"EUR": {"USD": "free"}}}}),
    ("PUT", "/v1/account", {"account": {"rates": {"EUR": {"USD": 0}}}}),
    ("PUT", "/v1/account", {"account": {"costs": {"margin": 2}}}),
    ("PUT", "/v1/account", {"account": {"holdout": {"by": "card"}}}),
    ("PUT", "/v1/rules/{name}/active", {"version": 1, "until": "0d"}),
    (
        "PUT",
        "/v1/rules/{name}/active",
        {"version": 1, "untested": True, "applies_from": "2040-01-01T00:00:00Z"},
    ),
    ("PUT", "/v1/rules/{name}/active", {"version": 1, "untested": True, "breaking": True}),
    ("POST", "/v1/suggestions", {"without": ["shoe size"]}),
    ("POST", "/v1/suggestions", {"since": "2030-13-31T12:00Z"}),
    ("POST", "/v1/payments", payment(currency="brl")),
    ("POST", "/v1/payments", payment(device={"ip_address": "somewhere"})),
    ("PUT", "/v1/account", {"account": {"thresholds": {"deny": 2}}}),
    ("PUT", "/v1/account", {"account": {"retention_days": 0}}),
    ("PUT", "/v1/account", {"account": {"time_zone": "here and there"}}),
    ("POST", "/v1/keys", {"key": {"scopes": []}}),
    ("POST", "/v1/keys", {"key": {"scopes": ["admin"], "name": "a\nb"}}),
    ("PUT", "/v1/lists/{name}", {"by": "prefix", "columns": {}}),
    ("PUT", "/v1/lists/{name}/entries", {"entries": []}),
    ("DELETE", "/v1/lists/{name}/entries", {"entries": []}),
    ("PUT", "/v1/searches/{name}", {"search": {"query": ""}}),
    ("PUT", "/v1/searches/{name}", {"search": {"query": "shoe:42"}}),
    ("PUT", "/v1/searches/{name}", {"search": {"query": "user:" + "u" * 500}}),
    ("PUT", "/v1/webhooks", {"webhook": {"url": "https://me@shop.example/"}}),
]


@pytest.fixture(scope="module")
async def shared_shop(shared_service: Service) -> Service:
    """A service with a rule `checkout` and a list `blocked`."""
    text = examples.RULE
    await shared_service.client.post("/v1/rules/checkout/versions?publish=true", content=text)
    await shared_service.client.put("/v1/lists/blocked", json={"type": "string"})
    return shared_service


@pytest.mark.anyio
@pytest.mark.parametrize(("method", "path", "body"), SAYABLE)
async def test_what_a_schema_can_say_of_a_refused_body_it_says(
    shared_shop: Service, method: str, path: str, body: Any
) -> None:
    name = "blocked" if "entries" in path else "checkout"
    answer = await shared_shop.client.request(method, path.replace("{name}", name), json=body)
    assert answer.status_code == 422, answer.text
    where = pointer("paths", path, method.lower(), "requestBody", "content", JSON, "schema")
    assert not validator(where).is_valid(body)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "member",
    [
        *(
            "version=1000000000",
            "ip=nowhere",
            "ip=203.0.113.7/33",
            "q=deny",
            "bin=41",
            "score_to=2",
        ),
        *("since=2030-01-31T25:00Z", "until=soon", "q=shoe:42"),
    ],
)
async def test_what_a_schema_can_say_of_a_refused_filter_it_says(
    shared_service: Service, member: str
) -> None:
    name, _, value = member.partition("=")
    assert (await shared_service.client.get(f"/v1/payments?{member}")).status_code == 422
    parameters = document()["paths"]["/v1/payments"]["get"]["parameters"]
    (number,) = [place for place, each in enumerate(parameters) if each.get("name") == name]
    where = pointer("paths", "/v1/payments", "get", "parameters", str(number), "schema")
    read: Any = float(value) if value.replace(".", "").isdigit() and name != "bin" else value
    assert not validator(where).is_valid(read)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("PUT", "/v1/lists/{name}", "a list"),
        ("POST", "/v1/rules/{name}/versions", "a rule"),
        ("PUT", "/v1/users/{name}", "ana bell"),
        ("PUT", "/v1/searches/{name}", "n" * 65),
    ],
)
async def test_what_a_schema_can_say_of_a_refused_name_it_says(
    shared_service: Service, method: str, path: str, name: str
) -> None:
    (media, sent), *_ = document()["paths"][path][method.lower()]["requestBody"]["content"].items()
    (example, *_) = sent["examples"].values()
    body = {"content": example["value"]} if media == TEXT else {"json": example["value"]}
    answer = await shared_service.client.request(method, path.replace("{name}", name), **body)
    assert answer.status_code == 422, answer.text
    parameters = document()["paths"][path][method.lower()]["parameters"]
    (number,) = [place for place, each in enumerate(parameters) if each.get("name") == "name"]
    where = pointer("paths", path, method.lower(), "parameters", str(number), "schema")
    assert not validator(where).is_valid(name)
    assert validator(where).is_valid("ana")


@pytest.mark.anyio
async def test_what_a_schema_can_say_of_a_refused_file_of_entries_it_says(service: Service) -> None:
    path = "/v1/lists/{name}/imports"
    await service.client.put("/v1/lists/blocked", json={"type": "string"})
    where = pointer("paths", path, "post", "requestBody", "content", TEXT, "schema")
    for text, status in (("value,note\nd-1,x\n", 200), ("note\nx\n", 422), ("", 422)):
        answer = await service.client.post("/v1/lists/blocked/imports", content=text)
        assert answer.status_code == status
        assert validator(where).is_valid(text) == answer.is_success


@pytest.mark.anyio
async def test_a_filter_takes_every_score_that_its_schema_has(service: Service) -> None:
    await service.client.post("/v1/payments", json=payment(id="p-1"))
    score = (await service.client.get("/v1/payments/p-1")).json()["payment"]["analyses"][
        "bot_behaviour"
    ]["score"]

    async def count(**asked: Any) -> int:
        found = await service.client.get("/v1/payments/count", params=asked)
        assert found.status_code == 200, found.text
        number: int = found.json()["count"]
        return number

    while not await count():
        await asyncio.sleep(0.01)
    assert await count(score_from=score - 0.001, score_to=score + 0.001) == 1
    assert await count(score_from=score + 0.001) == 0
    assert await count(score_to=score - 0.001) == 0
    assert await count(score_from=1e-30, score_to="1.000") == 1


@pytest.mark.parametrize("of", FILE_KINDS, ids=lambda of: of.path)
def test_a_date_from_which_a_version_applies_is_offered_for_event_types_alone(of: FileKind) -> None:
    store = document()["paths"][f"{of.base}/{{name}}/versions"]["post"]
    offered = {each["name"] for each in store["parameters"]} & {"breaking", "applies_from"}
    assert offered == ({"breaking", "applies_from"} if of.kind == "event" else set())


@asynccontextmanager
async def with_provider(service: Service, witness: Witness) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that knows an OpenID provider, which nobody asks here."""
    provider = Provider("https://login.example", "toll", "https://risk.example")
    openid = OpenId({"shop": provider})
    openid.issuers.learn(IssuerMetadata(provider.issuer, *["https://login.example/a"] * 3))
    transport = httpx.ASGITransport(public_app(service_of(service.engine, openid=openid)))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        client.event_hooks["response"] = [witness]
        yield client


def sent_example(path: str, name: str) -> Any:
    """The example of that name of what is put there."""
    sent = document()["paths"][path]["put"]["requestBody"]["content"][JSON]
    return sent["examples"][name]["value"]


@pytest.mark.anyio
async def test_every_answer_is_as_described(service: Service) -> None:
    witness = Witness()
    client = service.client
    client.event_hooks["response"] = [witness]

    async def good(method: str, path: str, **sent: Any) -> Any:
        answer = await client.request(method, path, **sent)
        assert answer.status_code < 300, (method, path, answer.text)
        return answer

    first = {"payment": examples.PAYMENT["payment"] | {"id": "p-0"}}
    await good("POST", "/v1/payments", json=first)
    of_scorecard = {"of": "scorecard"}
    await good("GET", "/v1/payments/p-0/explanation/records", params=of_scorecard)

    texts = {
        "rules/checkout": examples.RULE,
        "scorecards/bot_behaviour": examples.SCORECARD,
        "event-types/sign_in": examples.EVENT_TYPE,
        "definitions/amounts": examples.DEFINITIONS,
    }
    for file, text in texts.items():
        base = f"/v1/{file}"
        await good("POST", f"{base}/versions?publish=true", content=text)
        await good("POST", f"{base}/versions", content=text + "\n# reviewed\n")
        await good("DELETE", f"{base}/active")
        await good("PUT", f"{base}/active", json={"version": 1})
        await good("GET", base)
        await good("GET", base.rpartition("/")[0])
        await good("GET", f"{base}/versions/2")
        await good("GET", f"{base}/diff", params={"from": 1, "to": 2})
    await good("POST", "/v1/checks", json={"text": examples.RULE})
    await good("GET", "/v1/vocabulary")
    started = await good("POST", "/v1/backtests", json={"text": examples.RULE})
    await good("GET", "/v1/backtests")
    await good("GET", f"/v1/backtests/{started.json()['backtest']['id']}")
    await good("DELETE", f"/v1/backtests/{started.json()['backtest']['id']}")
    started = await good("POST", "/v1/suggestions", json={"since": "30d"})
    await good("GET", "/v1/suggestions")
    await good("GET", f"/v1/suggestions/{started.json()['suggestion']['id']}")
    await good("DELETE", f"/v1/suggestions/{started.json()['suggestion']['id']}")
    for file in ("rules/checkout", "scorecards/bot_behaviour"):
        await good("PUT", f"/v1/{file}/shadow", json={"version": 2})
        rollout = {"version": 2, "percent": 50, "by": "user"}
        await good("PUT", f"/v1/{file}/rollout", json=rollout)
        await good("GET", f"/v1/{file}")

    for body in (examples.PAYMENT, examples.SMALLEST, examples.FINISHED):
        await good("POST", "/v1/payments", json=body)
    known = "/v1/payments/order-1001-1"
    await good("PATCH", known, json=examples.UPDATE)
    await good("GET", known)
    await good("GET", f"{known}/explanation")
    await good("GET", f"{known}/shadows")
    await good("GET", "/v1/payments?q=since:1h")
    await good("GET", "/v1/payments/count")
    refused = "/v1/searches/refused%20today"
    await good("PUT", refused, json={"search": {"query": "action:deny since:1d"}})
    await good("GET", "/v1/searches")
    await good("DELETE", refused)
    await good("GET", "/v1/decisions/stream?seconds=1")
    sent = {"session": {"key": client.headers["authorization"].removeprefix("Bearer ")}}
    session = (await good("POST", "/v1/sessions", json=sent)).json()["session"]
    signed_in = {"authorization": f"Bearer {session['token']}"}
    await good("GET", "/v1/session", headers=signed_in)
    await good("DELETE", "/v1/session", headers=signed_in)
    await good("PUT", "/v1/users/ana", json={"user": {"role": "lead"}})
    await good("GET", "/v1/users")
    spare = examples.RULE.replace("rule checkout", "rule spare")
    await good("POST", "/v1/rules/spare/versions?publish=true", content=spare)
    await good("POST", "/v1/rules/spare/versions", content=spare + "\n# reviewed\n")
    for number, act in (("1", "refusal"), ("2", "approval"), ("3", "alone")):
        wanted = {"note": "stricter", "publish": {"name": "spare", "version": 2}}
        await good("POST", "/v1/proposals", json={"proposal": wanted})
        await good("GET", f"/v1/proposals/{number}")
        path = f"/v1/proposals/{number}/{act}"
        if act == "approval":
            key = await CreateKey("shop", ("admin",), owner="ana").perform(
                service.engine, "test", lambda _share: None
            )
            await good("POST", path, headers={"authorization": f"Bearer {key.key}"})
            await good("PUT", "/v1/rules/spare/active", json={"version": 1})
        else:
            terms = {"reason": "card testing"} | ({"until": "6h"} if act == "alone" else {})
            await good("POST", path, json={act: terms})
    await good("GET", "/v1/proposals")
    # Only now: who made a link for somebody has nothing approved by them.
    await good("POST", "/v1/users/ana/links")
    await good("DELETE", "/v1/users/ana")
    wanted = {"scopes": ["payments:write"], "expires_at": "2999-01-01T00:00:00Z"}
    made = await good("POST", "/v1/keys", json={"key": wanted})
    await good("GET", "/v1/keys")
    await good("DELETE", f"/v1/keys/{made.json()['key']['id']}")
    await good("GET", "/v1/sign-ins")
    async with with_provider(service, witness) as newcomer:
        begun = await newcomer.post("/v1/sign-ins", json={"sign_in": {"account": "shop"}})
        assert begun.status_code == 201, begun.text
    labels = f"{known}/labels"
    await good("PUT", f"{labels}/chargeback", json={"label": "fraud"})
    await good("POST", f"{known}/notes", json={"note": {"text": "called, no answer"}})
    await good("GET", f"{known}/notes")
    await good("POST", f"{known}/reveals", json={"reveal": {"field": "card"}})
    await good("GET", labels)
    await good("GET", "/v1/labels")
    await good("POST", "/v1/claims?label=none&limit=2")
    await good("GET", "/v1/claims")
    batch = [{"payment": each, "source": "import", "label": "fraud"} for each in ("p-7", "?")]
    await good("POST", "/v1/labels", json={"labels": batch})
    await good("DELETE", f"{labels}/chargeback")
    await good("GET", "/v1/figures?every=hour&by=action&money=true&compare=7d")
    await good("GET", "/v1/figures/movers")
    await good("GET", "/v1/figures/holdout")
    await good("GET", "/v1/figures/fields")
    await good("GET", "/v1/scores")
    await good("GET", "/v1/scores/drift?since=30d")
    await good("GET", "/v1/thresholds?challenge=0.4")
    await good("GET", "/v1/rules/checkout/performance")
    await good("GET", "/v1/payments/order-1001-1/related")
    await good("GET", "/v1/decisions", params={"limit": 2, "since": "2026-09-01T00:00:00Z"})

    for file in ("rules/checkout", "scorecards/bot_behaviour"):
        await good("GET", f"/v1/{file}/shadow")
        await good("DELETE", f"/v1/{file}/shadow")
        await good("DELETE", f"/v1/{file}/rollout")

    webhook = sent_example("/v1/webhooks", "webhook")
    hook = (await good("PUT", "/v1/webhooks", json=webhook)).json()["webhook"]["id"]
    for _ in range(3):
        await good("POST", "/v1/events", json=examples.EVENT)
    await good("POST", "/v1/events", json=examples.EVENTS)
    await good("GET", "/v1/event-types/sign_in/metrics/failures", params={"key": "u-1"})
    (alert, *_) = (await good("GET", "/v1/alerts")).json()["alerts"]
    await good("GET", f"/v1/alerts/{alert['id']}")
    await good("PUT", f"/v1/alerts/{alert['id']}", json={"alert": {"state": "closed"}})

    plain = {"value": "41", "expires_at": "2099-01-01T00:00:00Z"}
    row = plain | {"columns": {"country": "BR"}}
    files = {"list": "value\n41\n", "table": "value,country,funding\n41,BR,\n"}
    for name, entry in (("list", plain), ("table", row)):
        for _ in range(2):
            await good("PUT", f"/v1/lists/{name}", json=sent_example("/v1/lists/{name}", name))
        await good("GET", f"/v1/lists/{name}")
        await good("PUT", f"/v1/lists/{name}/entries", json={"entries": [entry]})
        await good("GET", f"/v1/lists/{name}/entries")
        for path in ("previews", "imports"):
            await good("POST", f"/v1/lists/{name}/{path}", content=files[name])
        await good("DELETE", f"/v1/lists/{name}/entries", json={"entries": [entry]})
    await good("GET", "/v1/lists")

    await good("GET", "/v1/account")
    await good("PUT", "/v1/account", json=sent_example("/v1/account", "thresholds"))
    await good("GET", "/v1/webhooks")
    await good("POST", f"/v1/webhooks/{hook}/secret", json={"secret": {}})
    await good("GET", f"/v1/webhooks/{hook}/deliveries")
    (delivery,) = (await good("GET", "/v1/webhooks/deliveries")).json()["deliveries"]
    await good("POST", f"/v1/webhooks/{hook}/deliveries/{delivery['id']}/redeliver")
    await good("POST", f"/v1/webhooks/{hook}/test")
    await good("DELETE", "/v1/webhooks", params={"url": webhook["webhook"]["url"]})
    await good("GET", "/v1/audit")
    await good("POST", "/v1/erasures", json={"user": "u-1"})
    for path in ("/health/live", "/health/ready", "/metrics"):
        await good("GET", path)
    for path in ("/schema", "/schema/openapi.json", "/schema/openapi.yaml"):
        await good("GET", path)

    described = {
        (operation.id, status)
        for operation in OPERATIONS
        for status in operation.operation.answers
        if status != SLOW
    }
    assert described - witness.seen == set()
