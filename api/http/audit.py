"""The audit log over HTTP: who changed what, and when."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import Cursor, Limit, NextCursor, Since, query_parameter
from tollkeeper.api.http.queries import read_choice, read_limit, read_place, read_since, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.api.http.views import AuditView, audit_view
from tollkeeper.engine.explain.records import AUDIT_KINDS, AuditFilter, audit_page
from tollkeeper.engine.registry.audit import AUDIT_ACTIONS


class AuditPage(Struct, frozen=True):
    audit: list[AuditView]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/audit",
    "read_audit",
    tag=ACCOUNT,
    summary="Read who changed what, newest first",
    doc=(
        "Keys, settings, versions, lists and webhooks; no secret is shown. "
        "`personal_data_read` says which paths with the scope `personal:read` a key "
        "requested: one item per ten seconds. `verdict_given` and `verdict_taken_back` "
        "report labels of the source `review`, as long as their payments are stored; labels "
        "of other sources are under `GET /v1/labels`. A page with fewer items than "
        "requested may still have a `cursor`."
    ),
    scope="audit:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def read_audit(
    request: Request,
    since: Since = None,
    by: Annotated[
        str | None, query_parameter("Only changes by this key, user or command.", example="ana")
    ] = None,
    action: Annotated[
        str | None,
        query_parameter(
            "Only changes of this kind.",
            {"type": "string", "enum": [*AUDIT_ACTIONS]},
            "entries_changed",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        query_parameter(
            "Only changes of the object with this name or id.", example="list blocked_devices"
        ),
    ] = None,
    kind: Annotated[
        str | None,
        query_parameter(
            "Only changes, only reads of personal data, or only verdicts.",
            {"type": "string", "enum": [*AUDIT_KINDS]},
            "change",
        ),
    ] = None,
    cursor: Cursor = None,
    limit: Limit = None,
) -> AuditPage:
    chosen = read_choice("action", action, AUDIT_ACTIONS)
    page = await audit_page(
        request.engine.journal,
        request.key.account,
        since=read_since(request, since),
        wanted=AuditFilter(by, chosen, subject),
        kind=read_choice("kind", kind, (*AUDIT_KINDS,)),
        cursor=read_place(request, "cursor", cursor),
        limit=read_limit(limit),
    )
    return AuditPage(
        [audit_view(item) for item in page.items],
        show_place(request, page.cursor),
    )


ROUTES = (read_audit,)
