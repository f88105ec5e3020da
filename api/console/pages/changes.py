"""Proposals that wait for another person, and the audit log, newest first and as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response, Stream

from tollkeeper.api.console.answers import csv_file, go_to, html, one_page
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.lists import ENTRY_TITLES, entry_row
from tollkeeper.api.console.pages.rules import difference
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
    number,
    row,
    separated,
    table,
    with_code,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

CHANGES = "/console/changes"
_NARROWED = {"by": "by", "action": "what", "subject": "subject", "since": "since"}
"""The filters of the log, with the column titles."""
_SINCE = "7d"
"""How a span is written, as an example."""
_KINDS = ("change", "access", "verdict", "every")
"""What the page can show of the log. Changes alone at first: reading the console is an access."""
_QUIET = ("checksum", "language", "spec")
"""Details that only the exported file contains."""
_VALUES = 20
"""The most values shown of a proposal."""
_ALONE = (("1h", "1 h"), ("6h", "6 h"), ("24h", "24 h"))
"""For how long somebody may publish alone."""


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
        await _proposals(here, [each for each in proposals if each["open"]]),
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


@post("/console/changes/{number_:str}")
async def decide(request: Request[Any, Any, Any], number_: FromPath[str]) -> Response[str]:
    """Approve a proposal, refuse it, or publish it alone."""
    here = await visit(request)
    sent = await read_form(request)
    path = f"/v1/proposals/{segment(number_)}"
    match sent["act"]:
        case "approve":
            await here.client.send("POST", f"{path}/approval")
        case "refuse":
            body: JsonObject = {"refusal": {"reason": sent.get("reason")}}
            await here.client.send("POST", f"{path}/refusal", body=body)
        case _:
            body = {"alone": {"until": sent["until"], "reason": sent.get("reason")}}
            await here.client.send("POST", f"{path}/alone", body=body)
    return go_to(target(CHANGES, decided=number_))


@get("/console/changes/export.csv")
async def export_changes(request: Request[Any, Any, Any]) -> Stream:
    here = await visit(request)
    rows = (
        [_export_row(each) for each in found["audit"]]
        async for found in here.client.read_pages("/v1/audit", {"limit": "200", **_filters(here)})
    )
    return await csv_file("changes", ("at", "by", "action", "subject", "detail"), rows)


@get("/console/changes/{number_:str}/entries.csv")
async def export_entries(request: Request[Any, Any, Any], number_: FromPath[str]) -> Stream:
    """Export the entries of a list that a proposal adds or removes; none of another proposal."""
    here = await visit(request)
    found = await here.client.get(f"/v1/proposals/{segment(number_)}")
    wanted = found["proposal"]["entries"]
    entries = () if wanted is None else wanted["entries"]
    columns = sorted({name for each in entries for name in each.get("columns") or ()})
    rows = one_page([entry_row(columns, each) for each in entries])
    return await csv_file("entries", ("value", *columns, *ENTRY_TITLES), rows)


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


async def _proposals(here: Visit, waiting: list[JsonObject]) -> Html:
    """Show the open proposals, each with its changes and the possible actions."""
    if not waiting:
        return element("p", here.words("changes.none_waiting"), class_="empty")
    shown = [await _proposal(here, each) for each in waiting]
    return element("section", element("h2", here.words("changes.waiting")), *shown)


async def _proposal(here: Visit, proposal: JsonObject) -> Html:
    words, alone = here.words, proposal["state"] == "alone"
    facts: list[tuple[str, str]] = [
        (words("changes.by"), proposal["by"]),
        (words("changes.at"), instant(here, proposal["at"])),
        (words("changes.note"), proposal["note"]),
    ]
    if proposal["until"] is not None:
        facts.append((words("rule.until"), instant(here, proposal["until"])))
    if proposal["applies_from"] is not None:
        facts.append((words("changes.applies_from"), instant(here, proposal["applies_from"])))
    if alone:
        facts.append((words("changes.alone_by"), proposal["decided_by"]))
        facts.append((words("rule.reason"), proposal["reason"]))
    return element(
        "article",
        element("h3", f"{proposal['number']} · ", _what(here, proposal)),
        notice("alarm", words("changes.is_alone")) if alone else Html(""),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", said)) for name, said in facts),
            class_="facts",
        ),
        *_untried(here, proposal),
        await _meaning(here, proposal),
        _backtest(here, proposal),
        _decision(here, proposal, alone=alone),
        class_="entity",
    )


def _untried(here: Visit, proposal: JsonObject) -> Iterator[Html]:
    """Say what nobody has tried of the version."""
    if proposal["untested"]:
        yield notice("warning", with_code(here.words("changes.untested")))
    for each in proposal["warnings"]:
        yield notice("warning", with_code(each["message"]))


def _what(here: Visit, proposal: JsonObject) -> Html:
    if proposal["settings"] is not None:
        said = json.dumps(proposal["settings"], default=str)
        return join_html(here.words("changes.settings"), " ", element("code", said))
    if proposal["entries"] is not None:
        return _entries(here, proposal)
    named = here.words(
        f"changes.{proposal['action']}", name=proposal["name"], version=proposal["version"]
    )
    if proposal["rollout"] is not None:
        named += f" · {proposal['rollout']['percent']} %"
    if proposal["kind"] != "rule":
        return element("span", named)
    return element("a", named, href=f"/console/rules/{segment(proposal['name'])}")


def _entries(here: Visit, proposal: JsonObject) -> Html:
    """Show the first entries that a proposal adds to a list, or removes, and lead to a file of
    all.
    """
    name, wanted = proposal["name"], proposal["entries"]
    said = here.words(f"changes.entries_{wanted['action']}", name=name, count=wanted["count"])
    values = []
    for each in wanted["entries"][:_VALUES]:
        end = each.get("expires_at")
        until = (
            "" if end is None else join_html(" ", here.words("rule.until"), " ", instant(here, end))
        )
        # A table's columns decide as much as its value does.
        columns = "".join(f" {key} {held}" for key, held in (each.get("columns") or {}).items())
        values.append(element("span", " · ", element("code", each["value"]), columns, until))
    address = f"{CHANGES}/{proposal['number']}/entries.csv"
    rest = join_html(" … ", element("a", here.words("payments.csv"), href=address))
    return join_html(
        element("a", said, href=f"/console/lists/{segment(name)}"),
        *values,
        rest if wanted["count"] > len(values) else "",
    )


async def _meaning(here: Visit, proposal: JsonObject) -> Html:
    """Show how the version differs in meaning from the one that was active at the proposal."""
    base, version = proposal["base"].removeprefix("version "), proposal["version"]
    if proposal["kind"] != "rule" or version is None or not base.isdigit():
        return Html("")
    address = f"rules/{segment(proposal['name'])}"
    found = await here.client.get(f"/v1/{address}/diff", {"from": base, "to": str(version)})
    items = [element("li", difference(each)) for each in found["differences"]]
    beside = target(f"/console/{address}/compare", before=base, after=str(version))
    return join_html(
        element("h4", element("a", here.words("changes.meaning", base=base), href=beside)),
        element("ul", *items) if items else element("p", here.words("rule.same"), class_="empty"),
    )


def _backtest(here: Visit, proposal: JsonObject) -> Html:
    words, figures = here.words, proposal["backtest"]
    if proposal["action"] != "publish":
        return Html("")
    if figures is None:
        return element("p", words("changes.no_backtest"), class_="hints")
    rows = [
        row(
            f"{each['was'] or '–'} → {each['now'] or '–'}",
            number(here, each["payments"]),
            numeric=(1,),
        )
        for each in figures["moved"]
    ]
    said = words(
        "changes.backtest",
        payments=number(here, figures["payments"]),
        changed=number(here, figures["changed"]),
        since=figures["since"][:10],
    )
    return join_html(
        element("h4", said),
        table([words("rule.turn"), words("payment.payments")], rows, said, numeric=(1,)),
    )


def _decision(here: Visit, proposal: JsonObject, *, alone: bool) -> Html:
    words = here.words
    is_own, may_publish = proposal["by"] == here.owner, here.may("rules:publish")
    controls = []
    # First the button that Enter presses after the reason, which is one for refusing.
    if may_publish or (is_own and not alone):
        said = "take_back" if is_own and not alone else "refuse"
        controls.append(
            element("button", words(f"changes.{said}"), name="act", value="refuse", class_="quiet")
        )
    if may_publish and not is_own:
        controls.append(element("button", words("changes.approve"), name="act", value="approve"))
    if not controls:
        return Html("")
    action = f"{CHANGES}/{proposal['number']}"
    reason = field(
        words("rule.reason"),
        element("input", name="reason", maxlength="500", autocomplete="off"),
    )
    deciding = element(
        "form", reason, *controls, method="post", action=action, data_kept="", class_="line"
    )
    if alone or not _may_be_alone(proposal):
        return deciding
    glass = element(
        "details",
        element("summary", words("changes.break_glass")),
        element("p", words("changes.glass_note"), class_="hints"),
        element(
            "form",
            reason,
            field(words("rule.how_long"), choices("until", _ALONE)),
            element("button", words("changes.alone"), name="act", value="alone"),
            method="post",
            action=action,
            data_kept="",
            class_="line",
        ),
    )
    return join_html(deciding, control_if_allowed(here, "rules:publish", glass))


def _may_be_alone(proposal: JsonObject) -> bool:
    """Whether it can be published alone: a version that decides, or entries to add."""
    if proposal["entries"] is not None:
        return bool(proposal["entries"]["action"] == "put")
    return proposal["action"] == "publish" and proposal["kind"] in ("rule", "scorecard")


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
