"""Parameters of several operations, for handlers' annotations."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from litestar.openapi.spec import Example
from litestar.params import PathParameter, QueryParameter
from msgspec import Meta

from tollkeeper.api.http.bodies import MAX_KEY
from tollkeeper.api.http.examples import PAYMENT
from tollkeeper.api.http.queries import MAX_PAGE, PAGE

TEXT: Final = {"type": "string"}
INSTANT: Final = {"type": "string", "format": "date-time"}
FLAG: Final = {"type": "boolean"}
NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
"""Allowed names of files and lists."""
LINE: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""Text without control characters."""
LINES: Final = r"^[^\x00-\x09\x0b-\x1f\x7f-\x9f]*$"
_DAY_EXTENDED = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_DAY_BASIC = "[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"
_HOUR, _SIXTY, _FRACTION = "([01][0-9]|2[0-3])", "[0-5][0-9]", "([.,][0-9]{1,9})?"
_ISO_8601 = (
    f"({_DAY_EXTENDED}T{_HOUR}:{_SIXTY}(:{_SIXTY}{_FRACTION})?"
    f"|{_DAY_BASIC}T{_HOUR}{_SIXTY}({_SIXTY}{_FRACTION})?)(Z|[+-]{_HOUR}(:?{_SIXTY})?)"
)
MOMENT: Final = {"type": "string", "pattern": f"^([0-9]{{1,6}}[smhdw]|{_ISO_8601})$"}
"""A span back from now, or an instant with an offset."""
SpanBack: TypeAlias = Annotated[str, Meta(extra_json_schema={"pattern": MOMENT["pattern"]})]
AHEAD: Final = {"type": "string", "pattern": f"^([1-9][0-9]{{0,3}}[mhd]|{_ISO_8601})$"}
"""An instant with an offset, or a span ahead of now."""
MOST_WHOLE: Final = 10**18 - 1


SEVERAL: Final = "several"
"""In a query parameter's annotation: it may be repeated."""


def query_parameter(
    doc: str,
    schema: dict[str, Any] = TEXT,
    example: str | int | None = None,
    name: str | None = None,
) -> QueryParameter:
    """A query parameter, which the handler gets as text; `schema` describes it."""
    # Its type is text or None, so that errors name the parameter.
    members = {"one_of": None, "type": None, **schema}
    return QueryParameter(
        name=name, description=doc, schema_extra=members, examples=_examples(example)
    )


def path_parameter(
    doc: str, example: str | int, schema: dict[str, Any] = TEXT, name: str | None = None
) -> PathParameter:
    """A path parameter."""
    return PathParameter(
        name=name, description=doc, schema_extra=schema, examples=_examples(example)
    )


def whole(least: int, most: int = MOST_WHOLE) -> dict[str, Any]:
    """Return the schema of a whole number within bounds."""
    return {"type": "integer", "minimum": least, "maximum": most}


def limit(most: int = MAX_PAGE, usual: int = PAGE) -> QueryParameter:
    """The most items of a page."""
    doc = f"Items on a page, 1 to {most}; {usual} when left out."
    return query_parameter(doc, whole(1, most), 50)


def _examples(example: str | int | None) -> list[Example] | None:
    return None if example is None else [Example(value=example)]


PaymentId: TypeAlias = Annotated[
    str,
    path_parameter(
        "The payment's id, percent-encoded; a `/` in it as `%2F`.",
        PAYMENT["payment"]["id"],
        name="id",
    ),
]
Cursor: TypeAlias = Annotated[
    str | None,
    query_parameter(
        "The `cursor` of the previous page; left out for the first page.",
        {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ),
]
Since: TypeAlias = Annotated[
    str | None,
    query_parameter(
        (
            "Only what arrived at this instant or later, or a span back such as `30d`; "
            "everything by default."
        ),
        MOMENT,
        "30d",
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
"""The header that makes a request repeatable, shared by all operations in the document."""
