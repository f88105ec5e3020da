"""Decisions over HTTP, newest first."""

from __future__ import annotations

from typing import Annotated, get_args

from msgspec import Struct

from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import Cursor, Limit, NextCursor, Since, query_parameter
from tollkeeper.api.http.queries import read_choice, read_limit, read_place, read_since, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.api.http.views import DecisionView, decision_view
from tollkeeper.engine.decision import Action
from tollkeeper.engine.explain.records import decided_page

_ACTIONS: tuple[Action, ...] = get_args(Action)


class DecisionPage(Struct, frozen=True):
    decisions: list[DecisionView]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/decisions",
    "list_decisions",
    tag=PAYMENTS,
    summary="List decisions, newest first",
    doc="A page with fewer items than requested may still have a `cursor`.",
    scope="payments:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def list_decisions(
    request: Request,
    since: Since = None,
    action: Annotated[
        str | None,
        query_parameter(
            "Only decisions with this action.", {"type": "string", "enum": [*_ACTIONS]}, "deny"
        ),
    ] = None,
    rule: Annotated[
        str | None, query_parameter("Only decisions by this rule.", example="checkout")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = None,
) -> DecisionPage:
    page = await decided_page(
        request.engine.journal,
        request.key.account,
        since=read_since(request, since),
        action=read_choice("action", action, _ACTIONS),
        rule=rule,
        cursor=read_place(request, "cursor", cursor),
        limit=read_limit(limit),
    )
    return DecisionPage(
        [decision_view(item) for item in page.items], show_place(request, page.cursor)
    )


ROUTES = (list_decisions,)
