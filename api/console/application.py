"""`/console`: its routes, their guards, and error pages."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from litestar import Litestar, Request, get
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.params import FromPath
from litestar.response import Response
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from structlog import get_logger

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.assets import assets
from tollkeeper.api.console.client import RefusalError
from tollkeeper.api.console.form import FORM_BYTES, IncompleteFormError
from tollkeeper.api.console.page import document, first_page, page
from tollkeeper.api.console.pages import (
    alerts,
    backtests,
    came_back,
    changes,
    contain,
    editor,
    keys,
    lists,
    now,
    payment,
    payments,
    proofs,
    proposals,
    report,
    review,
    rules,
    score,
    settings,
    sign_in,
    users,
    waiting,
)
from tollkeeper.api.console.parts import errors_notice
from tollkeeper.api.console.turns import Turns
from tollkeeper.api.console.visit import (
    SIGN_IN,
    VISIT,
    SignedOutError,
    Visit,
    choose_words,
    target,
)
from tollkeeper.api.html import element

CONSOLE_PATH = "/console"
_NOWHERE = "/console/nowhere"
"""A path without a page."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_KEPT = (b"toll-form", b"kept")
"""The header of a form that a script sends and keeps as it was filled in."""
_FOR_GOOD = "public, max-age=31536000, immutable"


def with_console(public: ASGIApp) -> ASGIApp:
    """Return the public interface together with the console, which calls it like any client."""
    console, turns = _console(), Turns()

    def handle(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == ScopeType.HTTP and is_console(scope["path"]):
            scope["state"] = {"public": public, "turns": turns}
            # A name may contain any character, even a slash: only path parameters are decoded.
            scope["path"] = scope["raw_path"].decode("latin-1")
            is_kept = _KEPT in scope["headers"]
            return console(scope, receive, _telling_where_to_go(send) if is_kept else send)
        return public(scope, receive, send)

    return handle


def _telling_where_to_go(send: Send) -> Send:
    """Answer a redirect with status 200 and its `location`: a script's request would follow a redirect
    at once, and the browser would then request the page again.
    """

    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.SEE_OTHER:
            message["status"] = int(HTTPStatus.OK)
        await send(message)

    return tell


def console_alone(public: ASGIApp) -> ASGIApp:
    """Return the console alone; it calls the public interface like any client."""
    both = with_console(public)

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        is_other = scope["type"] == ScopeType.HTTP and not is_console(scope["path"])
        if is_other:
            scope["path"], scope["raw_path"] = _NOWHERE, _NOWHERE.encode()
        await both(scope, receive, send)

    return handle


def is_console(path: str) -> bool:
    """Whether a path is one of the console's."""
    return path == CONSOLE_PATH or path.startswith(CONSOLE_PATH + "/")


@cache
def _console() -> ASGIApp:
    """Return the console's application. It holds no service: the public interface is passed in with
    each request.
    """
    return Litestar(
        route_handlers=[
            asset,
            now.now,
            waiting.waiting,
            payments.payments,
            payments.export,
            payments.save_search,
            payments.judge_found,
            payments.live,
            payment.payment,
            payment.reveal,
            payment.write_note,
            payment.label,
            payment.add_to_list,
            review.review,
            review.take,
            review.give_verdict,
            alerts.alerts,
            contain.alert,
            contain.outbreak,
            contain.mark,
            contain.contain,
            rules.rules,
            rules.rule,
            rules.activate,
            rules.propose,
            rules.shadow,
            rules.rollout,
            rules.compare,
            backtests.start,
            backtests.backtest,
            backtests.end,
            editor.edit,
            editor.new_rule,
            editor.check,
            editor.check_data,
            editor.vocabulary,
            editor.publish,
            proofs.prove,
            lists.lists,
            lists.make_list,
            lists.one_list,
            lists.find_entry,
            lists.change_entries,
            lists.export_list,
            lists.preview_file,
            lists.import_file,
            score.score,
            report.report,
            came_back.came_back,
            report.report_file,
            changes.changes,
            changes.export_changes,
            proposals.export_entries,
            proposals.decide,
            settings.settings,
            settings.change_settings,
            keys.keys,
            keys.make_key,
            keys.revoke_key,
            users.users,
            users.change_user,
            users.remove_user,
            users.give_link,
            sign_in.sign_in,
            sign_in.start_session,
            sign_in.go_to_provider,
            sign_in.come_from_provider,
            sign_in.end_session,
        ],
        before_request=prepare,
        request_max_body_size=FORM_BYTES,
        exception_handlers={
            SignedOutError: ask_to_sign_in,
            RefusalError: show_refusal,
            HTTPException: show_failure,
            IncompleteFormError: show_incomplete,
            Exception: show_fault,
        },
        openapi_config=None,
        logging_config=None,
    )


@get("/console/assets/{name:str}", sync_to_thread=False)
def asset(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    found = assets().get(name)
    if found is None:
        raise HTTPException(status_code=404)
    packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = {
        "cache-control": _FOR_GOOD,
        "x-content-type-options": "nosniff",
        "vary": "accept-encoding",
    }
    if packed:
        headers["content-encoding"] = "gzip"
    body = found.packed if packed else found.body
    return Response(body, media_type=found.media_type, headers=headers)


async def prepare(request: Request[Any, Any, Any]) -> Response[str] | None:
    """Percent-decode path parameters, and refuse forms of other sites."""
    request.scope["path_params"] = {
        name: unquote(value) for name, value in request.scope["path_params"].items()
    }
    return refuse_foreign(request)


def refuse_foreign(request: Request[Any, Any, Any]) -> Response[str] | None:
    """Refuse a form that another site sent; browsers report where a form comes from."""
    if request.method in _SAFE:
        return None
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    own = (
        site in ("same-origin", "none")
        if site
        else origin is None or _host(origin) == request.headers.get("host")
    )
    return None if own else html(_error_page(request, HTTPStatus.FORBIDDEN, "error.foreign"), 403)


def ask_to_sign_in(_request: Request[Any, Any, Any], error: SignedOutError) -> Response[str]:
    return go_to(target(SIGN_IN, back=error.back))


def show_refusal(request: Request[Any, Any, Any], refusal: RefusalError) -> Response[str]:
    """Show the interface's errors, with their fields, on a page of the same status."""
    here: Visit | None = request.state.get(VISIT)
    if here is not None and _is_for_other_roles(refusal):
        return html(_forbidden_page(here), refusal.status)
    words = choose_words(request)
    is_missing = refusal.status == HTTPStatus.NOT_FOUND
    title = words("error.missing") if is_missing else words("error.refused", status=refusal.status)
    content = (element("h1", title), errors_notice(refusal.errors))
    if here is not None:  # with the menu, so that the person can go on
        return html(page(here, title, *content), refusal.status)
    body = _frame(*content, element("a", words("error.back"), href="/console"))
    return html(document(words, title, body), refusal.status)


def _is_for_other_roles(refusal: RefusalError) -> bool:
    """Whether the person's role is the reason, and not what they would have done."""
    fields = {each["field"] for each in refusal.errors}
    return refusal.status == HTTPStatus.FORBIDDEN and fields <= {"authorization"}


def show_failure(request: Request[Any, Any, Any], error: HTTPException) -> Response[str]:
    status = HTTPStatus(error.status_code)
    named = "error.nothing" if status == HTTPStatus.NOT_FOUND else "error.failed"
    return html(_error_page(request, status, named), status)


def show_incomplete(request: Request[Any, Any, Any], _error: IncompleteFormError) -> Response[str]:
    """Answer a form without one of its fields, which these pages never send."""
    return html(_error_page(request, HTTPStatus.UNPROCESSABLE_ENTITY, "error.incomplete"), 422)


def show_fault(request: Request[Any, Any, Any], error: Exception) -> Response[str]:
    """Log an internal error without the address, which may contain personal data."""
    get_logger().error("console_failed", exc_info=error)
    return html(_error_page(request, HTTPStatus.INTERNAL_SERVER_ERROR, "error.failed"), 500)


def _forbidden_page(here: Visit) -> str:
    """Explain that the page isn't permitted, and list the pages that are."""
    words = here.words
    why = "error.of_all_merchants" if here.merchants else "error.forbidden"
    return page(
        here,
        words("error.not_yours"),
        element("h1", words("error.not_yours")),
        element("p", words(why, merchants=", ".join(here.merchants))),
        element("a", words("error.back"), href=first_page(here), class_="button"),
    )


def _error_page(request: Request[Any, Any, Any], status: HTTPStatus, named: str) -> str:
    words = choose_words(request)
    body = _frame(
        element("h1", f"{status.value}"),
        element("p", words(named)),
        element("a", words("error.back"), href="/console"),
    )
    return document(words, str(status.value), body)


def _frame(*content: str) -> Any:
    return element("body", element("main", *content, class_="alone", id="main"))


def _host(origin: str) -> str:
    return urlsplit(origin).netloc
