"""The application: every route, the one error body, one log line a request."""

from __future__ import annotations

from typing import NoReturn
from urllib.parse import unquote

from litestar import Litestar
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp

from tollkeeper.api.http import health, schema
from tollkeeper.api.http.account import account_routes
from tollkeeper.api.http.alerts import alert_routes
from tollkeeper.api.http.audit import audit_routes
from tollkeeper.api.http.bodies import AnyRequest
from tollkeeper.api.http.decisions import decision_routes
from tollkeeper.api.http.differences import difference_routes
from tollkeeper.api.http.erasures import erasure_routes
from tollkeeper.api.http.errors import nothing_here
from tollkeeper.api.http.events import event_routes, metric_routes
from tollkeeper.api.http.files import NOUNS, file_routes
from tollkeeper.api.http.lists import list_routes
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.observed import observed
from tollkeeper.api.http.openapi.document import OPERATIONS
from tollkeeper.api.http.payments import payments
from tollkeeper.api.http.routing import routes_of
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.http.trials import DECIDERS, trial_routes
from tollkeeper.api.http.webhooks import webhook_routes
from tollkeeper.engine.runtime import Engine

DEFAULTS = Settings()


def create_app(engine: Engine, settings: Settings = DEFAULTS) -> ASGIApp:
    """The ASGI application around an open engine."""
    figures = Figures()
    app = Litestar(
        route_handlers=routes(engine),
        state=State({"engine": engine, "figures": figures}),
        before_request=decode_names,
        exception_handlers={Exception: pass_on},
        openapi_config=None,
        logging_config=None,
    )
    find = routes_of((operation.path, operation.method) for operation in OPERATIONS)
    return observed(app, payments(engine), find, figures, settings)


def routes(engine: Engine) -> list[BaseRouteHandler]:
    """Everything that is served but the payments; `openapi/` describes it all."""
    return [
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


def pass_on(_request: AnyRequest, error: Exception) -> NoReturn:
    """All that is raised is answered in one place (`observed.py`)."""
    raise error
