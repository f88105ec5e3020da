"""Holds answers against the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema_rs

from tollkeeper.api.http.document import document
from tollkeeper.api.http.operation import JSON

DOCUMENT = "urn:document"


@cache
def validator(reference: str) -> Any:
    """Checks values against the schema at a JSON pointer into the document, members and all."""
    return jsonschema_rs.Draft202012Validator(
        {"$ref": DOCUMENT + quote(reference, safe="#/~")},
        validate_formats=True,
        registry=_registry(),
    )


@cache
def _registry() -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([(DOCUMENT, strict(document()))])


def strict(described: Any) -> Any:
    """The description with nothing allowed that it does not name."""
    match described:
        case {"properties": _, **_rest}:
            closed = {name: strict(value) for name, value in described.items()}
            return {"additionalProperties": False, **closed}
        case dict():
            return {name: strict(value) for name, value in described.items()}
        case list():
            return [strict(value) for value in described]
        case _:
            return described


def pointer(*parts: str) -> str:
    escaped = (part.replace("~", "~0").replace("/", "~1") for part in parts)
    return "#/" + "/".join(escaped)


def operation_at(method: str, path: str) -> tuple[str, Mapping[str, Any]]:
    """The path template and description of what answers there."""
    fitting = [
        template
        for template, methods in document()["paths"].items()
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in methods
    ]
    template = min(fitting, key=lambda each: each.count("{"))
    return template, document()["paths"][template][method.lower()]


def answer_pointer(template: str, method: str, status: int) -> str:
    """Where the document says what this answer's JSON is."""
    responses = document()["paths"][template][method.lower()]["responses"]
    assert str(status) in responses, f"{method} {template} has no {status}"
    shared = responses[str(status)].get("$ref")
    at = shared or pointer("paths", template, method.lower(), "responses", str(status))
    return at + pointer("content", JSON, "schema")[1:]


@dataclass
class Witness:
    """Follows a client, and checks each of its answers; `seen` are those it had."""

    seen: set[tuple[str, int]] = field(default_factory=set)

    async def __call__(self, response: httpx.Response) -> None:
        await response.aread()
        request = response.request
        path = request.url.raw_path.decode().partition("?")[0]
        template, operation = operation_at(request.method, path)
        self.seen.add((operation["operationId"], response.status_code))
        media_type = response.headers["content-type"].partition(";")[0]
        described = operation["responses"].get(str(response.status_code), {})
        if "$ref" not in described:
            assert media_type in described.get("content", {}), (request.method, template)
        if media_type == JSON:
            at = answer_pointer(template, request.method, response.status_code)
            validator(at).validate(response.json())
