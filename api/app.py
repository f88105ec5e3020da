"""The application: every route, the one error body, one log line a request."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

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
from tollkeeper.api.differences import difference_routes
from tollkeeper.api.erasures import erasure_routes
from tollkeeper.api.errors import (
    Problem,
    internal_error,
    nothing_here,
    unavailable,
)
from tollkeeper.api.events import event_routes, metric_routes
from tollkeeper.api.figures import Figures
from tollkeeper.api.files import NOUNS, file_routes
from tollkeeper.api.lists import list_routes
from tollkeeper.api.observed import observed
from tollkeeper.api.openapi.document import OPERATIONS
from tollkeeper.api.payments import payments
from tollkeeper.api.routing import routes_of
from tollkeeper.api.settings import Settings
from tollkeeper.api.trials import DECIDERS, trial_routes
from tollkeeper.api.webhooks import webhook_routes
from tollkeeper.engine.engine import Engine
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.registry.errors import Conflict, NotFound, Refused
from tollkeeper.engine.violations import Violation

DEFAULTS = Settings()


def create_app(engine: Engine, settings: Settings = DEFAULTS) -> ASGIApp:
    """The ASGI application around an open engine."""
    figures = Figures()
    app = Litestar(
        route_handlers=routes(engine),
        state=State({"engine": engine, "figures": figures}),
        before_request=decode_names,
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
    find = routes_of((operation.path, operation.method) for operation in OPERATIONS)
    return observed(app, find, figures, settings)


def routes(engine: Engine) -> list[BaseRouteHandler]:
    """Everything that is served; `openapi/` describes it."""
    return [
        payments(engine),
        *event_routes(engine),
        *metric_routes(engine),
        *alert_routes(engine),
        *webhook_routes(engine),
        *(route for kind in NOUNS for route in file_routes(engine, kind)),
        *(route for kind in NOUNS for route in difference_routes(engine, kind)),
        *(route for kind in DECIDERS for route in trial_routes(engine, kind)),
        *list_routes(engine),
        *account_routes(engine),
        *audit_routes(engine),
        *erasure_routes(engine),
        *decision_routes(engine),
        health.live,
        health.ready,
        health.metrics,
        schema.page,
        schema.json,
        schema.yaml,
    ]


async def decode_names(request: AnyRequest) -> None:
    """Names reach their handlers as they are meant, `a%2Fb` as `a/b`."""
    try:
        request.scope["path_params"] = {
            name: unquote(value, errors="strict") if isinstance(value, str) else value
            for name, value in request.scope["path_params"].items()
        }
    except UnicodeDecodeError:
        raise nothing_here() from None


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


def answer_framework(request: AnyRequest, error: HTTPException) -> Response[Any]:
    """What Litestar refuses by itself: a number in a path that is none, an odd `Host`."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        return answer_problem(request, nothing_here())
    violation = Violation("headers", "malformed_request", error.detail.lower())
    return answer_problem(request, Problem(error.status_code, [violation]))


def answer_fault(request: AnyRequest, fault: Exception) -> Response[Any]:
    """A fault of ours: logged with its trace, answered without a word of it."""
    get_logger().error("failed", route=request.scope["state"]["route"], exc_info=fault)
    return answer_problem(request, internal_error())
