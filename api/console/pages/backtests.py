"""Backtests of a version or a text: the progress, then what it would have changed."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    SHAPES,
    notice,
    number,
    payment_address,
    row,
    table,
    with_moments,
)
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

_BASE = "/console/backtests"
_SINCE = "30d"


@post(_BASE)
async def start(request: Request[Any, Any, Any]) -> Response[str]:
    """Start a backtest of a stored version, or of the editor's text."""
    here = await visit(request)
    sent = await read_form(request)
    body: JsonObject = {"text": sent.get("text").replace("\r\n", "\n"), "since": _SINCE}
    if sent.get("version"):
        version = {"name": sent["name"], "version": sent.whole("version")}
        body = {"version": version, "since": _SINCE}
    started = (await here.client.send("POST", "/v1/backtests", body=body))["backtest"]
    return go_to(_address(started["id"]))


@get("/console/backtests/{id_:str}")
async def backtest(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    """Show a backtest; the page refreshes itself each second while it runs."""
    here = await visit(request)
    found = (await here.client.get(f"/v1/backtests/{segment(id_)}"))["backtest"]
    goes_on = found["state"] in ("waiting", "running")
    refresh = {
        "hx_get": _address(id_),
        "hx_trigger": "load delay:1s",
        "hx_select": "#backtest",
        "hx_swap": "outerHTML",
    }
    title = here.words("backtest.title", name=found["name"])
    content = element(
        "div",
        element("h2", title),
        _progress(here, found) if goes_on else _outcome(here, found),
        id="backtest",
        aria_live="polite",
        **(refresh if goes_on else {}),
    )
    return html(page(here, title, element("h1", title, class_="unseen"), content))


@post("/console/backtests/{id_:str}/end")
async def end(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    here = await visit(request)
    found = await here.client.send("DELETE", f"/v1/backtests/{segment(id_)}")
    return go_to(f"/console/rules/{segment(found['backtest']['name'])}")


def _address(id_: str) -> str:
    return f"{_BASE}/{segment(id_)}"


def _progress(here: Visit, found: JsonObject) -> Html:
    words, done = here.words, round(100 * float(found["share"]))
    said = words("backtest.running", percent=done, since=found["since"][:10])
    return join_html(
        element("progress", max="100", value=str(done), aria_label=said),
        element("p", said),
        _first_changes(here, found["first_changes"]),
        element(
            "form",
            element("button", words("backtest.cancel"), class_="quiet"),
            method="post",
            action=f"{_address(found['id'])}/end",
        ),
    )


def _first_changes(here: Visit, changes: list[JsonObject]) -> Html:
    if not changes:
        return Html("")
    words = here.words
    rows = [
        row(
            _outcome_text(here, each["was"]),
            _outcome_text(here, each["now"]),
            _examples([each["example"]]),
        )
        for each in changes
    ]
    titles = [words(f"backtest.{title}") for title in ("was", "would", "example")]
    return table(titles, rows, words("backtest.first"))


def _outcome(here: Visit, found: JsonObject) -> Html:
    words, report = here.words, found["report"]
    if report is None:
        return notice("error", words("backtest.failed", reason=found["reason"] or found["state"]))
    summary = words(
        "backtest.summary",
        changed=number(here, report["changed"]["payments"]),
        payments=number(here, report["compared"]["payments"]),
    )
    rows = [
        row(
            _outcome_text(here, each["was"]),
            _outcome_text(here, each["now"]),
            number(here, each["payments"]),
            _examples(each["examples"]),
            numeric=(2,),
        )
        for each in report["changes"]
    ]
    titles = ("was", "would")
    return join_html(
        element("p", element("strong", summary)),
        table(
            [
                *(words(f"backtest.{title}") for title in titles),
                words("payment.payments"),
                words("backtest.examples"),
            ],
            rows,
            summary,
            numeric=(2,),
        )
        if rows
        else Html(""),
        element("h3", words("backtest.condition")),
        _conditions(here, report["conditions"]),
        element(
            "ul",
            *(element("li", with_moments(here, note)) for note in report["notes"]),
            class_="hints",
        ),
    )


def _conditions(here: Visit, conditions: list[JsonObject]) -> Html:
    words = here.words
    rows = [
        row(
            each["condition"] or words("rule.no_condition"),
            number(here, each["was"]["payments"]),
            number(here, each["now"]["payments"]),
            numeric=(1, 2),
        )
        for each in conditions
    ]
    titles = [words("rule.condition"), words("backtest.before"), words("backtest.after")]
    return table(titles, rows, words("backtest.condition"), numeric=(1, 2))


def _outcome_text(here: Visit, outcome: JsonObject) -> Html:
    name = outcome["action"] if outcome["action"] in SHAPES else "none"
    by = outcome["condition"]
    return element(
        "span",
        f"{SHAPES[name]} {here.words(f'action.{name}')}" + (f" · {by}" if by else ""),
        class_=f"action {name}",
    )


def _examples(examples: list[JsonObject]) -> Html:
    links = [element("a", each["id"], href=payment_address(each["id"])) for each in examples[:3]]
    return join_html(*(part for link in links for part in (link, " ")))
