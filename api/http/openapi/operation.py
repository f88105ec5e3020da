"""The form of an operation's description.

A body is described by a type that msgspec can give a JSON Schema for, by several of which it is
one, or, where it is an object made in place, by its members: `{"payment": Creation}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tollkeeper.engine.registry.changes import Scope

Method: TypeAlias = Literal["get", "post", "put", "patch", "delete"]
Shape: TypeAlias = Any
Body: TypeAlias = Mapping[str, Shape] | tuple[Shape, ...] | Shape
Refusal: TypeAlias = Literal[404, 409, 422, 503]

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
YAML = "application/yaml"


@dataclass(frozen=True, slots=True)
class Example:
    """A body as it could be sent or answered."""

    summary: str
    value: Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the path, the query or the header."""

    name: str
    place: Literal["path", "query", "header"]
    shape: Shape
    doc: str
    example: str | int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """A body: its shape, its media type, and examples by name."""

    body: Body
    media_type: str = JSON
    examples: Mapping[str, Example] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a good status says."""

    doc: str
    content: Content


@dataclass(frozen=True, slots=True)
class Operation:
    """One method at one path.

    `scope` is what the key must have, None for a path that needs no key. `refusals` are the
    statuses of the one error body that this operation has beside those that its scope and its
    body bring with them; `errors` are examples of its 422.
    """

    method: Method
    path: str
    id: str
    tag: str
    summary: str
    doc: str
    scope: Scope | None
    answers: Mapping[int, Answer]
    refusals: tuple[Refusal, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    sent: Content | None = None
    errors: Mapping[str, Example] = field(default_factory=dict)


def path_parameter(name: str, doc: str, example: str | int, shape: Shape = str) -> Parameter:
    return Parameter(name, "path", shape, doc, example)


def query_parameter(
    name: str, doc: str, shape: Shape = str, example: str | int | None = None
) -> Parameter:
    return Parameter(name, "query", shape, doc, example)


def answered(doc: str, body: Body, media_type: str = JSON, **examples: Example) -> Answer:
    return Answer(doc, Content(body, media_type, examples))
