"""Proposals that wait for another person, and the audit log, newest first and as a file."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from litestar import Request, get
from litestar.response import Response, Stream

from tollkeeper.api.console.answers import csv_file, html
from tollkeeper.api.console.client import JsonObject, RefusalError
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.proposals import CHANGES, waiting_proposals
from tollkeeper.api.console.parts import (
    Row,
    card_table,
    choices,
    control_if_allowed,
    errors_notice,
    field,
    in_turn,
    instant,
    legible,
    next_page,
    notice,
    row,
    separated,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_NARROWED = {"by": "by", "action": "what", "subject": "subject", "since": "since"}
"""The filters of the log, with the column titles."""
_SINCE = "7d"
"""How a span is written, as an example."""
_KINDS = ("change", "access", "verdict", "every")
"""What the page can show of the log. Changes alone at first: reading the console is an access."""
_QUIET = ("checksum", "language", "spec")
"""Details that only the exported file contains."""


@get(CHANGES)
async def changes(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    proposals = (await here.client.get("/v1/proposals"))["proposals"]
    address = target(f"{CHANGES}/export.csv", **_narrowed(here))
    export = element("a", words("payments.csv"), href=address)
    content = join_html(
        element(
            "header",
            element("h1", words("frame.changes")),
            control_if_allowed(here, "audit:read", export),
            class_="tools",
        ),
        _done(here),
        await waiting_proposals(here, [each for each in proposals if each["open"]]),
        await _audit(here) if here.may("audit:read") else Html(""),
    )
    return html(page(here, words("frame.changes"), content))


async def _audit(here: Visit) -> Html:
    words = here.words
    query = {"cursor": here.query.get("cursor"), "limit": "50", **_filters(here)}
    try:
        found = await here.client.get("/v1/audit", query)
    except RefusalError as refusal:
        if refusal.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        return join_html(
            element("h2", words("changes.audit")),
            _narrow_form(here),
            errors_notice(refusal.errors),
        )
    titles = ("at", "by", "what", "subject", "detail")
    return join_html(
        element("h2", words("changes.audit")),
        _narrow_form(here),
        card_table(
            [words(f"changes.{title}") for title in titles],
            [await in_turn(here, _row, each) for each in found["audit"]],
            words("changes.audit"),
            class_="rows plain",
        )
        if found["audit"]
        else element("p", words("changes.none_found"), class_="empty"),
        next_page(here, found["cursor"], words("payments.older")),
    )


def _narrowed(here: Visit) -> dict[str, str | None]:
    """Return the log's filters from the query."""
    return {name: here.query.get(name) for name in (*_NARROWED, "kind")}


def _kind(here: Visit) -> str:
    """Return the kind to show; an action is of one kind alone, which need not be chosen."""
    return "every" if here.query.get("action") else here.query.get("kind") or "change"


def _filters(here: Visit) -> dict[str, str | None]:
    """Return the filters as the interface takes them."""
    kind = _kind(here)
    return {**_narrowed(here), "kind": None if kind == "every" else kind}


def _narrow_form(here: Visit) -> Html:
    """The form that filters the log; clicking a cell in a row fills it in."""
    fields = (
        field(here.words(f"changes.{title}"), _filter(here, name))
        for name, title in _NARROWED.items()
    )
    kinds = [(kind, here.words(f"changes.kind_{kind}")) for kind in _KINDS]
    every = element("a", here.words("changes.every"), href=CHANGES)
    return element(
        "form",
        field(here.words("changes.kind"), choices("kind", kinds, _kind(here))),
        *fields,
        element("button", here.words("payments.go"), class_="quiet"),
        every if any(_narrowed(here).values()) else Html(""),
        action=CHANGES,
        class_="line narrowing",
    )


def _filter(here: Visit, name: str) -> Html:
    chosen = here.query.get(name, "")
    if name == "action":
        actions = sorted(here.words.group("audit").items(), key=lambda each: each[1])
        return choices(name, [("", here.words("changes.every_action")), *actions], chosen)
    example = _SINCE if name == "since" else None
    return element("input", name=name, value=chosen, placeholder=example, autocomplete="off")


@get("/console/changes/export.csv")
async def export_changes(request: Request[Any, Any, Any]) -> Stream:
    here = await visit(request)
    rows = (
        [_export_row(each) for each in found["audit"]]
        async for found in here.client.read_pages("/v1/audit", {"limit": "200", **_filters(here)})
    )
    return await csv_file("changes", ("at", "by", "action", "subject", "detail"), rows)


def _export_row(change: JsonObject) -> tuple[str, ...]:
    detail = json.dumps(change["detail"], default=str)
    return change["at"], change["by"], change["action"], change["subject"], detail


def _done(here: Visit) -> Html:
    if "decided" in here.query:
        return notice("good", here.words("changes.done_decided", number=here.query["decided"]))
    match here.query.get("proposed", "").split(","):
        case [""]:
            return Html("")
        case [number_]:
            return notice("good", here.words("changes.done_proposed", number=number_))
        case numbers:
            said = here.words("changes.done_proposed_several", numbers=", ".join(numbers))
            return notice("good", said)


def _row(here: Visit, change: JsonObject) -> Row:
    said = [
        join_html(element("b", name.replace("_", " ")), " ", _plain(here, value))
        for name, value in change["detail"].items()
        if name not in _QUIET and value not in (None, "", [], {})
    ]

    def narrowed(name: str, text: str) -> Html:
        return element("a", text, href=target(CHANGES, **{**_narrowed(here), name: change[name]}))

    return row(
        instant(here, change["at"]),
        narrowed("by", change["by"]),
        narrowed("action", here.words(f"audit.{change['action']}")),
        narrowed("subject", change["subject"]),
        element("span", separated(" · ", said), class_="detail"),
    )


def _plain(here: Visit, value: Any) -> Html:
    """Show a value as people write it."""
    if isinstance(value, str):
        return legible(here, value)
    if isinstance(value, list):
        return separated(", ", (_plain(here, each) for each in value))
    if isinstance(value, dict):
        return separated(
            ", ", (join_html(name, " ", _plain(here, held)) for name, held in value.items())
        )
    return join_html(json.dumps(value, default=str))
