"""Declare an operation beside its handler: what is served and what is described are one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_type_hints

from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter

from tollkeeper.api.http.authentication import ANY_SCOPE, RouteScope, authorize
from tollkeeper.api.http.limits import Demand
from tollkeeper.api.http.request import Request

HttpMethod: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Refusal: TypeAlias = Literal[401, 404, 409, 422, 429, 503]
Handler = TypeVar("Handler", bound=Callable[..., Any])

JSON: Final = "application/json"
TEXT: Final = "text/plain"
HTML: Final = "text/html"
YAML: Final = "application/yaml"

SECURITY: Final = "key"
"""The document's name for a key in the header `Authorization`."""
_DECLARED: Final = "operation"


@dataclass(frozen=True, slots=True)
class Example:
    """A body as it could be sent or answered."""

    summary: str
    value: Any


@dataclass(frozen=True, slots=True)
class Body:
    """A body that an operation takes: its type, or several of which it is one."""

    type: Any
    examples: Mapping[str, Example] = field(default_factory=dict)
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Answer:
    """What a good status says: its type, or several of which it is one.

    `type` may be None for the status of the handler's own return type.
    """

    doc: str
    type: Any = None
    examples: Mapping[str, Example] = field(default_factory=dict)
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation's description has beyond what the framework reads from a handler.

    `scope` is what the key must have, `any` for every good key, None for a path that needs no key. `refusals` are the
    statuses of the one error body that this operation has beside those that its scope and its
    body bring with them; `errors` are examples of its 422. `repeatable` operations read an
    `Idempotency-Key`. Of the parameters in `query` those in `unlisted` are taken, not described.
    """

    scope: RouteScope
    answers: Mapping[int, Answer]
    sent: Body | None
    refusals: tuple[Refusal, ...]
    errors: Mapping[str, Example]
    repeatable: bool
    query: frozenset[str]
    unlisted: tuple[str, ...]


def operation(
    method: HttpMethod,
    path: str,
    name: str,
    *,
    tag: str,
    summary: str,
    doc: str,
    scope: RouteScope,
    answers: Mapping[int, Answer],
    sent: Body | None = None,
    refusals: tuple[Refusal, ...] = (),
    errors: Mapping[str, Example] | None = None,
    repeatable: bool = False,
    unlisted: tuple[str, ...] = (),
    of_merchants: bool = False,
    demand: Demand = "work",
) -> Callable[[Handler], HTTPRouteHandler]:
    """Make a handler, under its operation's `name`, the route of `method` at `path`. The first of `answers` is its usual status.

    Parameters of the path and the query are the handler's own, described in their annotations.
    `of_merchants` says that it tells a user who sees some merchants alone of no others; where it
    does not, it refuses them. `demand` tells which of a key's limits it counts for.
    """
    (usual, answer), *others = answers.items()

    def declare(handler: Handler) -> HTTPRouteHandler:
        if answer.type is not None:
            handler.__annotations__["return"] = answer.type
        query = _query_parameters(handler)
        declared = Operation(
            scope, answers, sent, refusals, errors or {}, repeatable, query, unlisted
        )
        return HTTPRouteHandler(
            path,
            http_method=method,
            operation_id=name,
            tags=[tag],
            summary=summary,
            description=_with_scope(doc, scope),
            security=[] if scope is None else [{SECURITY: []}],
            status_code=usual,
            response_description=answer.doc,
            responses={
                status: ResponseSpec(each.type, False, each.doc, each.media_type)
                for status, each in others
            },
            media_type=answer.media_type,
            request_class=Request,
            guards=[authorize],
            opt={
                _DECLARED: declared,
                "scope": scope,
                "query": query,
                "of_merchants": of_merchants,
                "demand": demand,
            },
            sync_to_thread=None,
        )(handler)

    return declare


def _query_parameters(handler: Callable[..., Any]) -> frozenset[str]:
    """The names of the parameters that a handler takes from the query."""
    return frozenset(
        found.name or name
        for name, type_ in get_type_hints(handler, include_extras=True).items()
        for found in getattr(type_, "__metadata__", ())
        if isinstance(found, QueryParameter)
    )


def operation_of(route: HTTPRouteHandler) -> Operation:
    """What was declared of the route."""
    found: Operation = route.opt[_DECLARED]
    return found


def _with_scope(doc: str, scope: RouteScope) -> str:
    return (
        doc
        if scope in (None, ANY_SCOPE)
        else f"{doc.rstrip()}\n\nThe key needs the scope `{scope}`."
    )
