"""Parameters that several operations have, and the cursor that continues a page."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from tollkeeper.api.http.idempotency import MAX_KEY
from tollkeeper.api.http.openapi.operation import Parameter, query_parameter
from tollkeeper.api.http.queries import MAX_PAGE

Cursor: TypeAlias = Annotated[
    str | None, Meta(description="Send it as `cursor` for the next page; null at the end.")
]

IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "header",
    Annotated[str, Meta(min_length=1, max_length=MAX_KEY, pattern="^[ -~]+$")],
    "Names this request. The same request again within 24 hours gets the stored answer; another "
    "body under the same key gets 422.",
    "order-1001-1-create",
)
CURSOR = query_parameter("cursor", "The `cursor` of the page before; left out for the first page.")
SINCE = query_parameter(
    "since",
    "Only what arrived at this instant or later, RFC 3339 with an offset.",
    example="2026-09-10T00:00:00Z",
)


def limit(most: int = MAX_PAGE) -> Parameter:
    shape = Annotated[int, Meta(ge=1, le=most)]
    return query_parameter("limit", f"Items on a page, {most} when left out.", shape, 50)
