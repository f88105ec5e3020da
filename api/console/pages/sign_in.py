"""Sign in, with a one-time link or a key, and sign out."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import attempt_cookie, go_to, html, session_cookie
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import document
from tollkeeper.api.console.parts import field, notice, with_code
from tollkeeper.api.console.visit import (
    ATTEMPT_COOKIE,
    COOKIE,
    SIGN_IN,
    choose_words,
    public_client,
)
from tollkeeper.api.console.words import Words
from tollkeeper.api.html import Html, element, join_html

_SIGN_IN_BYTES = 64 * 1024
"""The most bytes of a form by someone who is not signed in."""


@get(SIGN_IN)
async def sign_in(request: Request[Any, Any, Any]) -> Response[str]:
    code, back = request.query_params.get("code"), request.query_params.get("back", "")
    return html(await _form(request, code, back, failed=False))


@post(SIGN_IN, request_max_body_size=_SIGN_IN_BYTES)
async def start_session(request: Request[Any, Any, Any]) -> Response[str]:
    """Start a session with the key or link code that was sent."""
    sent = await read_form(request)
    held = {name: sent[name] for name in ("key", "code") if sent.get(name)}
    back = sent.get("back")
    client = public_client(request, "")
    try:
        started = (await client.send("POST", "/v1/sessions", body={"session": held}))["session"]
    except RefusalError:
        return html(await _form(request, None, back, failed=True), 401)
    answer = go_to(back if back.startswith("/console") else "/console")
    answer.cookies.append(session_cookie(started["token"]))
    return answer


@get("/console/sign-in/with/{account:str}")
async def go_to_provider(request: Request[Any, Any, Any], account: FromPath[str]) -> Response[str]:
    """Redirect to a provider, from a link: forms may only lead to the console."""
    client = public_client(request, "")
    try:
        body = {"sign_in": {"account": account}}
        begun = (await client.send("POST", "/v1/sign-ins", body=body))["sign_in"]
    except RefusalError:
        return html(await _form(request, None, "", failed=True), 401)
    answer = go_to(begun["address"])
    answer.cookies.append(attempt_cookie(begun["attempt"]))
    return answer


@get("/console/sign-in/openid")
async def come_from_provider(request: Request[Any, Any, Any]) -> Response[str]:
    """Start a session when a provider sends a person back with a code."""
    query = request.query_params
    held = {
        "attempt": request.cookies.get(ATTEMPT_COOKIE, ""),
        "state": query.get("state", ""),
        "code": query.get("code", ""),
        "issuer": query.get("iss"),
    }
    client = public_client(request, "")
    try:
        started = (await client.send("POST", "/v1/sessions", body={"session": held}))["session"]
        answer = go_to("/console")
        answer.cookies.append(session_cookie(started["token"]))
    except RefusalError:
        answer = html(await _form(request, None, "", failed=True), 401)
    answer.cookies.append(attempt_cookie(""))
    return answer


@post("/console/sign-out")
async def end_session(request: Request[Any, Any, Any]) -> Response[str]:
    client = public_client(request, request.cookies.get(COOKIE, ""))
    with suppress(RefusalError):  # the session has ended already
        await client.send("DELETE", "/v1/session")
    answer = go_to(SIGN_IN)
    answer.cookies.append(session_cookie(""))
    answer.headers["clear-site-data"] = '"cache", "storage"'
    return answer


async def _form(
    request: Request[Any, Any, Any], code: str | None, back: str, *, failed: bool
) -> Html:
    words = choose_words(request)
    providers = (await public_client(request, "").get("/v1/sign-ins"))["providers"]
    way = (
        element("input", type="hidden", name="code", value=code)
        if code
        else field(
            words("sign_in.key"),
            element("input", type="password", name="key", autocomplete="off", required=""),
        )
    )
    body = element(
        "body",
        element(
            "main",
            element("h1", "Tollkeeper"),
            notice("error", words("sign_in.failed")) if failed else Html(""),
            Html("") if code else _providers(words, providers),
            element("p", with_code(words("sign_in.with_link" if code else "sign_in.with_key"))),
            element(
                "form",
                way,
                element("input", type="hidden", name="back", value=back),
                element("button", words("sign_in.enter")),
                method="post",
                action=SIGN_IN,
                class_="stack",
            ),
            class_="alone",
            id="main",
        ),
    )
    return document(words, words("sign_in.enter"), body)


def _providers(words: Words, providers: list[JsonObject]) -> Html:
    return join_html(
        *(
            element(
                "p",
                element(
                    "a",
                    words("sign_in.with_provider", title=each["title"]),
                    href=f"/console/sign-in/with/{segment(each['account'])}",
                    class_="button",
                ),
            )
            for each in providers
        )
    )
