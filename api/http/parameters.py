"""Parameters that several operations have, as handlers annotate them."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from litestar.openapi.spec import Example
from litestar.params import PathParameter, QueryParameter
from msgspec import Meta

from tollkeeper.api.http.bodies import MAX_KEY
from tollkeeper.api.http.queries import MAX_PAGE, PAGE

TEXT: Final = {"type": "string"}
INSTANT: Final = {"type": "string", "format": "date-time"}
FLAG: Final = {"type": "boolean"}
MOMENT: Final = {
    "type": "string",
    "pattern": r"^([0-9]{1,6}[smhdw]|[0-9]{4}-?[0-9]{2}-?[0-9]{2}[T ][0-9]{2}.*)$",
}
"""A span back from now, or an instant with an offset."""
SpanBack: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": MOMENT["pattern"]})]
AHEAD: Final = {
    "type": "string",
    "pattern": r"^([1-9][0-9]{0,3}[mhd]|[0-9]{4}-?[0-9]{2}-?[0-9]{2}[T ][0-9]{2}.*)$",
}
"""An instant with an offset, or a span ahead of now."""
MOST_WHOLE: Final = 10**18 - 1


def query_parameter(
    doc: str,
    schema: dict[str, Any] = TEXT,
    example: str | int | None = None,
    name: str | None = None,
) -> QueryParameter:
    """A parameter of the query, which its handler reads as text and describes as `schema`."""
    # The handler's own type is text or nothing, for its errors to name the parameter.
    said = {"one_of": None, "type": None, **schema}
    return QueryParameter(
        name=name, description=doc, schema_extra=said, examples=_examples(example)
    )


def path_parameter(
    doc: str, example: str | int, schema: dict[str, Any] = TEXT, name: str | None = None
) -> PathParameter:
    """A parameter of the path."""
    return PathParameter(
        name=name, description=doc, schema_extra=schema, examples=_examples(example)
    )


def whole(least: int, most: int = MOST_WHOLE) -> dict[str, Any]:
    """The schema of a whole number within bounds."""
    return {"type": "integer", "minimum": least, "maximum": most}


def limit(most: int = MAX_PAGE, usual: int = PAGE) -> QueryParameter:
    """How many items a page may hold."""
    doc = f"Items on a page, 1 to {most}; {usual} when left out."
    return query_parameter(doc, whole(1, most), 50)


def _examples(example: str | int | None) -> list[Example] | None:
    return None if example is None else [Example(value=example)]


Cursor: TypeAlias = Annotated[
    str | None,
    query_parameter(
        "The `cursor` of the page before; left out for the first page.",
        {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ),
]
Since: TypeAlias = Annotated[
    str | None,
    query_parameter(
        "Only what arrived at this instant or later, with an offset.",
        INSTANT,
        "2026-09-10T00:00:00Z",
    ),
]
Limit: TypeAlias = Annotated[str | None, limit()]

NextCursor: TypeAlias = Annotated[
    str | None, Meta(description="Send it as `cursor` for the next page; null at the end.")
]

IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Names this request. The same request again within 24 hours gets the stored "
    "answer; another method, path or body under the same key gets 422.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"},
    "example": "order-1001-1-create",
}
"""The header that makes a request repeatable, as the document shares it."""
