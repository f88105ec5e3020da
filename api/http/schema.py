"""`/schema`: the API's description as a page and as OpenAPI; public, made once."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, Final

import msgspec
from litestar import Response

from tollkeeper.api.http.operation import HTML, JSON, YAML, Answer, operation
from tollkeeper.api.http.schema_page import schema_page
from tollkeeper.api.http.tags import SERVICE

_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


@operation(
    "GET",
    "/schema",
    "schema_page",
    tag=SERVICE,
    summary="Read this description as a page",
    doc="It needs no other file: no script, no font, no image.",
    scope=None,
    answers={200: Answer("The page.", str, media_type=HTML)},
)
async def page() -> Response[bytes]:
    return Response(await asyncio.to_thread(_page), media_type=HTML, headers=_HEADERS)


@operation(
    "GET",
    "/schema/openapi.json",
    "schema_json",
    tag=SERVICE,
    summary="Read this description as OpenAPI 3.1",
    doc="For tools that generate clients and tests.",
    scope=None,
    answers={200: Answer("The document.", dict[str, Any])},
)
async def json() -> Response[bytes]:
    return Response(await asyncio.to_thread(_json), media_type=JSON)


@operation(
    "GET",
    "/schema/openapi.yaml",
    "schema_yaml",
    tag=SERVICE,
    summary="Read it as YAML",
    doc="For people and tools that prefer it.",
    scope=None,
    answers={200: Answer("The document.", dict[str, Any], media_type=YAML)},
)
async def yaml() -> Response[bytes]:
    return Response(await asyncio.to_thread(_yaml), media_type=YAML)


@cache
def _page() -> bytes:
    return schema_page(_document()).encode()


@cache
def _json() -> bytes:
    return msgspec.json.encode(_document())


@cache
def _yaml() -> bytes:
    return msgspec.yaml.encode(_document())


def _document() -> dict[str, Any]:
    # Imported late, since the document describes these routes too.
    from tollkeeper.api.http.document import document

    return document()


ROUTES = (page, json, yaml)
