"""The OpenAPI 3.1 document: routes from the framework, types from msgspec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from inspect import cleandoc, isclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from litestar import Litestar
from litestar._openapi.schema_generation import SchemaCreator
from litestar.openapi import OpenAPIConfig
from litestar.plugins import OpenAPISchemaPluginProtocol
from litestar.typing import FieldDefinition

from tollkeeper.api.http.description import DESCRIPTION
from tollkeeper.api.http.dispatch import described_path
from tollkeeper.api.http.error_answers import ERROR_HEADERS, STATUSES
from tollkeeper.api.http.errors import ErrorBody
from tollkeeper.api.http.notices import NOTICES
from tollkeeper.api.http.operation import JSON, SECURITY, Example, Operation, operation_of
from tollkeeper.api.http.parameters import IDEMPOTENCY_KEY
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.api.http.tags import ACCOUNT, TAGS
from tollkeeper.engine.registry.changes import NoticeKind
from tollkeeper.engine.release import this_release

OPENAPI = "3.1.1"

_SCHEMAS = "#/components/schemas/"
_RESPONSES = "#/components/responses/"
_REPEATABLE = "IdempotencyKey"

Json = dict[str, Any]


@cache
def document() -> Json:
    """Return the whole document as plain data."""
    types: dict[str, Any] = {ErrorBody.__name__: ErrorBody}
    paths = _route_descriptions(types)
    for route in ROUTES:
        operation = operation_of(route)
        for path in route.paths:
            for method in route.http_methods:
                described = paths[described_path(path)][method.lower()]
                _complete(described, operation, types)
    webhooks = {kind: {"post": _sent_notice(kind, types)} for kind in NOTICES}
    return {
        "openapi": OPENAPI,
        "info": {
            "title": "Tollkeeper",
            "version": this_release(),
            "summary": "A payment risk service with a rule language",
            "description": DESCRIPTION,
        },
        "servers": [{"url": "/", "description": "The service that answers this."}],
        "tags": [{"name": name, "description": doc} for name, doc in TAGS.items()],
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": _schemas(types.values()),
            "responses": {each.name: _error_answer(status) for status, each in STATUSES.items()},
            "parameters": {_REPEATABLE: IDEMPOTENCY_KEY},
            "securitySchemes": {
                SECURITY: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`Authorization: Bearer <key>`; see Authentication.",
                }
            },
        },
    }


def statuses(operation: Operation) -> list[int]:
    """Return all error statuses that the operation can answer with."""
    found = {*operation.refusals, 400, 500}
    if operation.scope is not None:
        # 422 also for unknown query parameters.
        found |= {401, 403, 422, 429}
    if operation.sent is not None:
        found |= {408, 413, 415}
    return sorted(found)


class _Types(OpenAPISchemaPluginProtocol):
    """Leaves the schema of each Struct to msgspec, under its own name, and collects it in `types`."""

    def __init__(self, types: dict[str, Any]) -> None:
        self._types = types

    @staticmethod
    def is_plugin_supported_type(value: Any) -> bool:
        return isclass(value) and issubclass(value, msgspec.Struct)

    def to_openapi_schema(
        self, field_definition: FieldDefinition, schema_creator: SchemaCreator
    ) -> Any:
        known = schema_creator.schema_registry
        schema = known.get_schema_for_field_definition(field_definition)
        schema.title = _note(field_definition.annotation, self._types)
        return known.get_reference_for_field_definition(field_definition)


def _route_descriptions(types: dict[str, Any]) -> dict[str, Json]:
    """Describe each route as the framework knows it: ids, texts, parameters, successful answers."""
    described = Litestar(
        ROUTES,
        # Without the framework's own documentation pages at `/schema`; nobody requests them from
        # this application.
        openapi_config=OpenAPIConfig("", "", path="/unused", render_plugins=[]),
        plugins=[_Types(types)],
        logging_config=None,
    )
    whole: Json = msgspec.json.decode(msgspec.json.encode(described.openapi_schema.to_schema()))
    paths: dict[str, Json] = whole["paths"]
    return paths


def _complete(described: Json, operation: Operation, types: dict[str, Any]) -> None:
    """Add what the framework doesn't know: errors, bodies, examples."""
    described.pop("deprecated", None)
    if operation.deprecated is not None:
        described["deprecated"] = True
    for parameter in described.get("parameters", ()):
        _tidy(parameter)
    if operation.unlisted:
        described["parameters"] = [
            each for each in described["parameters"] if each["name"] not in operation.unlisted
        ]
    answers = {}
    for status, answer in operation.answers.items():
        response = described["responses"][str(status)]
        for content in response["content"].values():
            _add_examples(content, answer.examples)
        answers[str(status)] = {"description": answer.doc, "content": response["content"]}
    for status in statuses(operation):
        answers[str(status)] = {"$ref": _RESPONSES + STATUSES[status].name}
    if operation.errors:
        invalid = {"schema": {"$ref": _SCHEMAS + ErrorBody.__name__}}
        _add_examples(invalid, operation.errors)
        answers["422"] = {"description": STATUSES[422].doc, "content": {JSON: invalid}}
    described["responses"] = answers
    if operation.repeatable:
        reference = {"$ref": f"#/components/parameters/{_REPEATABLE}"}
        described["parameters"] = [*described.get("parameters", ()), reference]
    if operation.sent is not None:
        content = {"schema": _shape(operation.sent.type, types)}
        _add_examples(content, operation.sent.examples)
        described["requestBody"] = {
            "required": True,
            "content": {operation.sent.media_type: content},
        }


def _sent_notice(kind: NoticeKind, types: dict[str, Any]) -> Json:
    """Describe what the service sends to webhooks for one kind of notice."""
    type_, example = NOTICES[kind]
    content = {"schema": {"$ref": _SCHEMAS + _note(type_, types)}}
    _add_examples(content, {"example": Example(kind, {"kind": kind, **example})})
    return {
        "operationId": f"receive_{kind.replace('.', '_')}",
        "tags": [ACCOUNT],
        "summary": kind,
        "description": f"{cleandoc(type_.__doc__ or '')} Sent to each webhook that wants it at least "
        "once, until an answer of 2xx within 10 seconds takes it. Check the signature before the "
        "body is read.",
        "security": [],
        "parameters": [
            _sent_header(
                "Toll-Signature",
                "`t=SECONDS,v1=HEX`, a `v1` for each secret: HMAC-SHA256 over `SECONDS.BODY`.",
                f"t=1789000000,v1={'0' * 64}",
            ),
            _sent_header(
                "Toll-Delivery", "The same for every attempt.", f"{'0' * 32}-a1b2c3d4e5f6"
            ),
        ],
        "requestBody": {"required": True, "content": {JSON: content}},
        "responses": {"2XX": {"description": "The notice was taken."}},
    }


def _sent_header(name: str, doc: str, example: str) -> Json:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": doc,
        "schema": {"type": "string"},
        "example": example,
    }


def _tidy(parameter: Json) -> None:
    """Remove from a parameter what its schema repeats."""
    for name in ("deprecated", "allowEmptyValue", "allowReserved"):
        parameter.pop(name, None)
    schema = parameter["schema"]
    schema.pop("description", None)
    for example in schema.pop("examples", ()):
        parameter["example"] = example
    parameter.pop("examples", None)


def _add_examples(content: Json, examples: Mapping[str, Example]) -> None:
    if examples:
        content["examples"] = {
            name: {"summary": each.summary, "value": each.value} for name, each in examples.items()
        }


def _error_answer(status: int) -> Json:
    each = STATUSES[status]
    content: Json = {"schema": {"$ref": _SCHEMAS + ErrorBody.__name__}}
    _add_examples(content, {"example": each.example})
    response: Json = {"description": each.doc, "content": {JSON: content}}
    if status in ERROR_HEADERS:
        response["headers"] = ERROR_HEADERS[status]
    return response


def _shape(type_: Any, types: dict[str, Any]) -> Json:
    """Return the schema of a body: a named type, or one of several."""
    if get_origin(type_) in (Union, UnionType):
        return {"anyOf": [_shape(each, types) for each in get_args(type_)]}
    if type_ is str or get_origin(type_) is Annotated:
        return msgspec.json.schema(type_)
    return {"$ref": _SCHEMAS + _note(type_, types)}


def _note(type_: Any, types: dict[str, Any]) -> str:
    """Register a type; returns its name in the document."""
    name: str = type_.__name__
    assert types.setdefault(name, type_) is type_, f"two types are named {name}"
    return name


def _schemas(types: Iterable[Any]) -> Json:
    _, named = msgspec.json.schema_components(types, ref_template=_SCHEMAS + "{name}")
    assert not [name for name in named if "." in name or "_" in name], "a name is there twice"
    return {name: _clean_schema(named[name]) for name in sorted(named)}


def _clean_schema(schema: Any) -> Any:
    """Remove defaults of null, and describe arrays and free-form objects in keywords that every
    client generator supports.
    """
    if isinstance(schema, Mapping):
        if schema.get("items") is False:
            first, *others = schema["prefixItems"]
            assert all(other == first for other in others), "a row of several types"
            schema = {**schema, "items": first}
            del schema["prefixItems"]
        if schema.get("type") == "object" and "properties" not in schema:
            schema = {"additionalProperties": True, **schema}
        return {
            name: cleandoc(value)
            if name == "description" and isinstance(value, str)
            else _clean_schema(value)
            for name, value in schema.items()
            if not (name == "default" and (value is None or value == ()))
        }
    if isinstance(schema, list | tuple):
        return [_clean_schema(item) for item in schema]
    return schema
