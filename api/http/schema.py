"""`/schema`: the interface's description as a page and as OpenAPI; public, made once."""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
from litestar import Response, get

from tollkeeper.api.http.openapi.document import document
from tollkeeper.api.http.openapi.operation import HTML, JSON, YAML
from tollkeeper.api.http.schema_page import schema_page

_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}


@get("/schema", operation_id="schema_page", sync_to_thread=True)
def page() -> Response[bytes]:
    """The description as a page."""
    return Response(_page(), media_type=HTML, headers=_HEADERS)


@get("/schema/openapi.json", operation_id="schema_json", sync_to_thread=True)
def json() -> Response[bytes]:
    """The OpenAPI document."""
    return Response(_json(), media_type=JSON)


@get("/schema/openapi.yaml", operation_id="schema_yaml", sync_to_thread=True)
def yaml() -> Response[bytes]:
    """The OpenAPI document in YAML."""
    return Response(_yaml(), media_type=YAML)


@cache
def _page() -> bytes:
    return schema_page(document()).encode()


@cache
def _json() -> bytes:
    return msgspec.json.encode(document())


@cache
def _yaml() -> bytes:
    return msgspec.yaml.encode(document())
