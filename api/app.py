"""The application: every route, the one error body, one log line a request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp
from structlog import get_logger

from tollkeeper.api import health, schema
from tollkeeper.api.account import account_routes
from tollkeeper.api.alerts import alert_routes
from tollkeeper.api.audit import audit_routes
from tollkeeper.api.bodies import AnyRequest
from tollkeeper.api.decisions import decision_routes
from tollkeeper.api.errors import Problem, internal_error, unavailable
from tollkeeper.api.events import event_routes
from tollkeeper.api.files import NOUNS, file_routes
from tollkeeper.api.lists import list_routes
from tollkeeper.api.observed import observed
from tollkeeper.api.payments import payments
from tollkeeper.api.trials import DECIDERS, trial_routes
from tollkeeper.api.webhooks import webhook_routes
from tollkeeper.engine.engine import Engine
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.registry.errors import Conflict, NotFound, Refused
from tollkeeper.engine.violations import Violation


def create_app(engine: Engine) -> ASGIApp:
    """The ASGI application around an open engine."""
    return observed(
        Litestar(
            route_handlers=routes(engine),
            state=State({"engine": engine}),
            exception_handlers={
                Problem: answer_problem,
                Refused: answer_refused,
                JournalError: answer_unavailable,
                HTTPException: answer_framework,
                Exception: answer_fault,
            },
            openapi_config=None,
            logging_config=None,
        )
    )


def routes(engine: Engine) -> list[BaseRouteHandler]:
    """Everything that is served; `openapi/` describes it."""
    return [
        payments(engine),
        *event_routes(engine),
        *alert_routes(engine),
        *webhook_routes(engine),
        *(route for kind in NOUNS for route in file_routes(engine, kind)),
        *(route for kind in DECIDERS for route in trial_routes(engine, kind)),
        *list_routes(engine),
        *account_routes(engine),
        *audit_routes(engine),
        *decision_routes(engine),
        health.live,
        health.ready,
        health.metrics,
        schema.page,
        schema.json,
        schema.yaml,
    ]


def answer_problem(_request: AnyRequest, problem: Problem) -> Response[Any]:
    headers = {name.decode(): value.decode() for name, value in problem.headers}
    return Response({"errors": problem.violations}, status_code=problem.status, headers=headers)


def answer_refused(_request: AnyRequest, refused: Refused) -> Response[Any]:
    """404, 409 or 422 for what the registry would not do."""
    status = {
        NotFound: HTTPStatus.NOT_FOUND,
        Conflict: HTTPStatus.CONFLICT,
    }.get(type(refused), HTTPStatus.UNPROCESSABLE_ENTITY)
    return Response({"errors": refused.violations}, status_code=status)


def answer_unavailable(request: AnyRequest, _error: JournalError) -> Response[Any]:
    """503: nothing was changed, since it can't be kept."""
    return answer_problem(request, unavailable("nothing can be written at the moment"))


def answer_framework(_request: AnyRequest, error: HTTPException) -> Response[Any]:
    """What Litestar refuses by itself: no such route, no such method."""
    violation = {
        404: Violation("path", "not_found", "there is nothing at this path"),
        405: Violation("method", "method_not_allowed", "this method isn't allowed here"),
    }.get(error.status_code, Violation("body", "invalid_value", error.detail or "bad request"))
    return Response(
        {"errors": [violation]}, status_code=error.status_code, headers=dict(error.headers or {})
    )


def answer_fault(_request: AnyRequest, fault: Exception) -> Response[Any]:
    """A fault of ours: logged with its trace, answered without a word of it."""
    get_logger().error("failed", exc_info=fault)
    problem = internal_error()
    return Response({"errors": problem.violations}, status_code=problem.status)
