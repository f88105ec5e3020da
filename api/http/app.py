"""The application: all routes, the one error body, one log line per request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NoReturn
from urllib.parse import unquote

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from tollkeeper.api.console.application import with_console
from tollkeeper.api.http import health, payments
from tollkeeper.api.http.bodies import AnyRequest
from tollkeeper.api.http.dispatch import (
    Find,
    bypass_framework,
    described_path,
    observe_requests,
    routes_of,
)
from tollkeeper.api.http.errors import unknown_path
from tollkeeper.api.http.limits import Limiter
from tollkeeper.api.http.metrics import Figures
from tollkeeper.api.http.plain import AnswerPlain, PlainPayments
from tollkeeper.api.http.request import Service
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.api.http.settings import Settings
from tollkeeper.api.http.taken_payments import AnswerTaken, PaymentLinks
from tollkeeper.engine.offline.jobs.jobs import Jobs
from tollkeeper.engine.openid.sign_in import OpenId
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.ask import LocalSearch, Search

DEFAULTS = Settings()
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def service_of(
    engine: Engine,
    settings: Settings = DEFAULTS,
    search: Search | None = None,
    jobs: Jobs | None = None,
    figures: Figures | None = None,
    openid: OpenId | None = None,
) -> Service:
    """Return what the requests of the public interface share.

    Without `search`, each question updates the index itself. The caller closes `jobs`.
    """
    search = search or LocalSearch(engine.source)
    figures, jobs = figures or Figures(), jobs or Jobs()
    figures.watch(engine)
    return Service(engine, search, jobs, figures, settings, Limiter(settings), openid or OpenId())


def public_app(service: Service) -> ASGIApp:
    """Return the ASGI application of the public interface.

    The metrics are left out if they have a listener of their own, or if other machines can reach
    this one.
    """
    app = _app(_public_routes(service), service)
    return with_console(app) if service.settings.console == "on" else app


def plain_payments(answer: AnswerPlain) -> PlainPayments:
    """Return what finds plain requests of the public interface, for `answer` to answer without ASGI."""
    return PlainPayments(_find_route(ROUTES), answer)


def payment_links(answer_of: Callable[[bytes], AnswerTaken], settings: Settings) -> PaymentLinks:
    """Return what takes over the connections on which other nodes send payments."""
    return PaymentLinks(_find_route(ROUTES), answer_of, settings.idle_seconds)


def _public_routes(service: Service) -> tuple[HTTPRouteHandler, ...]:
    hidden = () if _shows_figures(service.settings) else (health.metrics,)
    return tuple(route for route in ROUTES if route not in hidden)


def create_admin_app(engine: Engine, settings: Settings, figures: Figures) -> ASGIApp:
    """Return the ASGI application of the operator's own listener: health and metrics."""
    search = LocalSearch(engine.source)
    service = Service(engine, search, Jobs(), figures, settings, Limiter(settings), OpenId())
    return _app(health.ROUTES, service)


def _shows_figures(settings: Settings) -> bool:
    return settings.admin_port is None and settings.host in _LOOPBACK


def _app(routes: tuple[HTTPRouteHandler, ...], service: Service) -> ASGIApp:
    app = _framework(routes)
    return observe_requests(
        app, bypass_framework(payments.ROUTES, app), _find_route(routes), service
    )


@cache
def _find_route(routes: tuple[HTTPRouteHandler, ...]) -> Find:
    return routes_of(
        (described_path(path), method)
        for route in routes
        for path in route.paths
        for method in route.http_methods
    )


@cache
def _framework(routes: tuple[HTTPRouteHandler, ...]) -> Litestar:
    """Return the framework's application. It holds no engine, so services with the same routes
    share it.
    """
    return Litestar(
        route_handlers=[route for route in routes if route not in payments.ROUTES],
        before_request=decode_names,
        exception_handlers={Exception: pass_on},
        openapi_config=None,
        logging_config=None,
    )


async def decode_names(request: AnyRequest) -> None:
    """Percent-decode path parameters, so that handlers get `a/b` for `a%2Fb`."""
    try:
        request.scope["path_params"] = {
            name: unquote(value, errors="strict") if isinstance(value, str) else value
            for name, value in request.scope["path_params"].items()
        }
    except UnicodeDecodeError:
        raise unknown_path() from None


def pass_on(_request: AnyRequest, error: Exception) -> NoReturn:
    """Re-raise every error: `dispatch.py` answers them all."""
    raise error
