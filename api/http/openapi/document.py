"""The OpenAPI 3.1 document, made of the operations and the types they name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from inspect import cleandoc
from typing import Any

import msgspec

from tollkeeper.api.http.openapi import account, events, files, lists, payments, service
from tollkeeper.api.http.openapi.errors import STATUSES
from tollkeeper.api.http.openapi.operation import (
    Answer,
    Body,
    Content,
    Example,
    Operation,
    Parameter,
    Shape,
    answered,
)
from tollkeeper.api.http.openapi.words import DESCRIPTION, TAGS
from tollkeeper.engine.intake.violations import Violation

OPERATIONS: tuple[Operation, ...] = (
    *payments.OPERATIONS,
    *events.OPERATIONS,
    *files.OPERATIONS,
    *lists.OPERATIONS,
    *account.OPERATIONS,
    *service.OPERATIONS,
)
OPENAPI = "3.1.1"
ERROR_BODY = {"errors": list[Violation]}

_SCHEMAS = "#/components/schemas/"
_RESPONSES = "#/components/responses/"
_SECURITY = "key"

Json = dict[str, Any]


@cache
def document() -> Json:
    """The whole document, in plain data."""
    schemas: Json = {}
    paths: dict[str, Json] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation, schemas)
    responses = {
        each.name: _answer(answered(each.doc, ERROR_BODY, example=each.example), schemas)
        for each in STATUSES.values()
    }
    return {
        "openapi": OPENAPI,
        "info": {
            "title": "Tollkeeper",
            "version": version("tollkeeper"),
            "summary": "A payment risk service with a rule language",
            "description": DESCRIPTION,
        },
        "servers": [{"url": "/", "description": "The service that answers this."}],
        "tags": [{"name": name, "description": doc} for name, doc in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": responses,
            "securitySchemes": {
                _SECURITY: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`Authorization: Bearer <key>`; see Authentication.",
                }
            },
        },
    }


def statuses(operation: Operation) -> list[int]:
    """Every status of the one error body that the operation can answer with."""
    found = {*operation.refusals, 400, 500}
    if operation.scope is not None:
        found |= {401, 403}
    if operation.sent is not None:
        found |= {408, 413, 415, 422}
    return sorted(found)


def _operation(operation: Operation, schemas: Json) -> Json:
    refusals: Json = {
        str(status): {"$ref": _RESPONSES + STATUSES[status].name} for status in statuses(operation)
    }
    if operation.errors:
        invalid = Answer(STATUSES[422].doc, Content(ERROR_BODY, examples=operation.errors))
        refusals["422"] = _answer(invalid, schemas)
    described: Json = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": _needs(operation),
        "security": [] if operation.scope is None else [{_SECURITY: []}],
    }
    if operation.parameters:
        described["parameters"] = [_parameter(each, schemas) for each in operation.parameters]
    if operation.sent is not None:
        described["requestBody"] = {
            "required": True,
            "content": _content(operation.sent, schemas),
        }
    good = {str(status): _answer(each, schemas) for status, each in operation.answers.items()}
    return {**described, "responses": {**good, **refusals}}


def _needs(operation: Operation) -> str:
    if operation.scope is None:
        return operation.doc
    return f"{operation.doc.rstrip()}\n\nThe key needs the scope `{operation.scope}`."


def _parameter(parameter: Parameter, schemas: Json) -> Json:
    described: Json = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.doc,
        "schema": _schema(parameter.shape, schemas),
    }
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _answer(answer: Answer, schemas: Json) -> Json:
    return {"description": answer.doc, "content": _content(answer.content, schemas)}


def _content(content: Content, schemas: Json) -> Json:
    described: Json = {"schema": _body(content.body, schemas)}
    if content.examples:
        described["examples"] = {
            name: _example(example) for name, example in content.examples.items()
        }
    return {content.media_type: described}


def _example(example: Example) -> Json:
    return {"summary": example.summary, "value": example.value}


def _body(body: Body, schemas: Json) -> Json:
    if isinstance(body, tuple):
        return {"anyOf": [_schema(shape, schemas) for shape in body]}
    if not isinstance(body, Mapping):
        return _schema(body, schemas)
    return {
        "type": "object",
        "properties": {name: _schema(shape, schemas) for name, shape in body.items()},
        "required": list(body),
    }


def _schema(shape: Shape, schemas: Json) -> Json:
    """The JSON Schema of a type; the named ones that it holds join `schemas`."""
    (schema,), named = msgspec.json.schema_components([shape], ref_template=_SCHEMAS + "{name}")
    for name, found in named.items():
        cleaned = _cleaned(found)
        assert schemas.setdefault(name, cleaned) == cleaned, f"two types are named {name}"
    shown: Json = _cleaned(schema)
    return shown


def _cleaned(schema: Any) -> Any:
    """Without defaults of null, which only say that a member may be left out."""
    if isinstance(schema, Mapping):
        return {
            name: cleandoc(value)
            if name == "description" and isinstance(value, str)
            else _cleaned(value)
            for name, value in schema.items()
            if not (name == "default" and (value is None or value == ()))
        }
    if isinstance(schema, list | tuple):
        return [_cleaned(item) for item in schema]
    return schema
