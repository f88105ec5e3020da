"""Who changed what, when: the audit log over HTTP."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import Cursor, Limit, NextCursor, Since
from tollkeeper.api.http.queries import read_limit, read_place, read_since, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.api.http.views import AuditView, audit_view
from tollkeeper.engine.explain.records import audit_page


class AuditPage(Struct, frozen=True):
    audit: list[AuditView]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/audit",
    "read_audit",
    tag=ACCOUNT,
    summary="Read who changed what, newest first",
    doc="Keys, settings, versions, lists and webhooks; no secret is shown. `personal_data_read` says "
    "which paths of the scope `personal:read` were asked for with a key: one item for ten seconds. "
    "`verdict_given` and `verdict_taken_back` tell of labels of the source `review`, as long as their "
    "payments are kept; labels of other sources are under `GET /v1/labels`.",
    scope="audit:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def read_audit(
    request: Request, since: Since = None, cursor: Cursor = None, limit: Limit = None
) -> AuditPage:
    page = await audit_page(
        request.engine.journal,
        request.key.account,
        since=read_since(since),
        cursor=read_place(request, "cursor", cursor),
        limit=read_limit(limit),
    )
    return AuditPage(
        [audit_view(item) for item in page.items],
        show_place(request, page.cursor),
    )


ROUTES = (read_audit,)
