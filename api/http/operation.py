"""Declare an operation beside its handler, for both routing and documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_type_hints

from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter

from tollkeeper.api.http.authentication import ANY_SCOPE, RouteScope, authorize
from tollkeeper.api.http.limits import Demand
from tollkeeper.api.http.parameters import SEVERAL
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
_NOTICE: Final = timedelta(days=181)
"""Six months: at least this many days."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a body."""

    summary: str
    value: Any


@dataclass(frozen=True, slots=True)
class Body:
    """A body that an operation takes: its type, or several, one of which is sent."""

    type: Any
    examples: Mapping[str, Example] = field(default_factory=dict)
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer: its type, or several, one of which is returned.

    `type` may be None for the handler's own return type.
    """

    doc: str
    type: Any = None
    examples: Mapping[str, Example] = field(default_factory=dict)
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Deprecation:
    """An operation will be removed: deprecated from `since` on, removed at `until`, both in UTC;
    `instead` is the page that describes its replacement.

    Raises `ValueError` if that is less than the promised six months (docs/api.md, "Stability").
    """

    since: datetime
    until: datetime
    instead: str

    def __post_init__(self) -> None:
        if self.until - self.since < _NOTICE:
            raise ValueError("what goes is announced six months before")

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers according to RFC 9745 and RFC 8594."""
        return [
            (b"deprecation", b"@%d" % self.since.timestamp()),
            (b"sunset", format_datetime(self.until.astimezone(UTC), usegmt=True).encode()),
            (b"link", f'<{self.instead}>; rel="deprecation"'.encode()),
        ]

    def text(self) -> str:
        """The text in the document."""
        return (
            f"Deprecated since {self.since:%Y-%m-%d}; it stops on {self.until:%Y-%m-%d}. "
            f"[What takes its place]({self.instead})."
        )


@dataclass(frozen=True, slots=True)
class Operation:
    """The parts of an operation's description that the framework can't read from a handler.

    `scope` is the required one, `any` for every valid key, None if no key is needed. `refusals` are
    the error statuses besides those that follow from scope and body; `errors` are examples of its
    422. `repeatable` operations read an `Idempotency-Key`. Parameters in `query` that are also in
    `unlisted` are accepted but not documented.
    """

    scope: RouteScope
    answers: Mapping[int, Answer]
    sent: Body | None
    refusals: tuple[Refusal, ...]
    errors: Mapping[str, Example]
    repeatable: bool
    query: frozenset[str]
    unlisted: tuple[str, ...]
    deprecated: Deprecation | None


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
    deprecated: Deprecation | None = None,
) -> Callable[[Handler], HTTPRouteHandler]:
    """Make a handler the route of `method` at `path`, under its operation's `name`. The first of
    `answers` is its usual status.

    Path and query parameters are the handler's own, described in their annotations. `of_merchants`
    means that it shows a user who is limited to some merchants nothing of others; without it, such
    users are refused. `demand` selects the rate limit.
    """
    (usual, answer), *others = answers.items()

    def declare(handler: Handler) -> HTTPRouteHandler:
        if answer.type is not None:
            handler.__annotations__["return"] = answer.type
        query = _query_parameters(handler)
        names = frozenset(query)
        declared = Operation(
            scope, answers, sent, refusals, errors or {}, repeatable, names, unlisted, deprecated
        )
        return HTTPRouteHandler(
            path,
            http_method=method,
            operation_id=name,
            tags=[tag],
            summary=summary,
            description=_with_scope(
                doc if deprecated is None else f"{deprecated.text()}\n\n{doc}", scope
            ),
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
                "deprecated": [] if deprecated is None else deprecated.headers(),
            },
            sync_to_thread=None,
        )(handler)

    return declare


def _query_parameters(handler: Callable[..., Any]) -> dict[str, bool]:
    """Return the query parameters of a handler, and whether each may be repeated."""
    return {
        found.name or name: SEVERAL in type_.__metadata__
        for name, type_ in get_type_hints(handler, include_extras=True).items()
        for found in getattr(type_, "__metadata__", ())
        if isinstance(found, QueryParameter)
    }


def operation_of(route: HTTPRouteHandler) -> Operation:
    """Return the route's declaration."""
    found: Operation = route.opt[_DECLARED]
    return found


def _with_scope(doc: str, scope: RouteScope) -> str:
    return (
        doc
        if scope in (None, ANY_SCOPE)
        else f"{doc.rstrip()}\n\nThe key needs the scope `{scope}`."
    )
