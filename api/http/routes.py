"""Every route of the interface, in the order of its document."""

from __future__ import annotations

from typing import Final

from litestar.handlers import HTTPRouteHandler

from tollkeeper.api.http import (
    account,
    alerts,
    audit,
    backtests,
    checks,
    claims,
    decisions,
    differences,
    erasures,
    events,
    evidence,
    figures,
    files,
    health,
    labels,
    lists,
    payments,
    proposals,
    schema,
    search,
    sessions,
    sign_ins,
    stream,
    suggestions,
    thresholds,
    trials,
    users,
    webhooks,
)

ROUTES: Final[tuple[HTTPRouteHandler, ...]] = (
    *payments.ROUTES,
    *evidence.ROUTES,
    *search.ROUTES,
    *decisions.ROUTES,
    *stream.ROUTES,
    *labels.ROUTES,
    *claims.ROUTES,
    *figures.ROUTES,
    *thresholds.ROUTES,
    *events.ROUTES,
    *alerts.ROUTES,
    *files.ROUTES,
    *differences.ROUTES,
    *checks.ROUTES,
    *backtests.ROUTES,
    *suggestions.ROUTES,
    *trials.ROUTES,
    *proposals.ROUTES,
    *lists.ROUTES,
    *account.ROUTES,
    *audit.ROUTES,
    *users.ROUTES,
    *sign_ins.ROUTES,
    *sessions.ROUTES,
    *erasures.ROUTES,
    *webhooks.ROUTES,
    *health.ROUTES,
    *schema.ROUTES,
)
