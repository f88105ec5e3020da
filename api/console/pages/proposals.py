"""Proposals that wait: what each would change and whom it would hit, as whoever decides reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response, Stream

from tollkeeper.api.console.answers import csv_file, go_to, one_page
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.pages.lists import ENTRY_TITLES, entry_row, hits_of_values
from tollkeeper.api.console.pages.rules import backtest_button, difference, rule_address
from tollkeeper.api.console.parts import (
    choices,
    control_if_allowed,
    field,
    instant,
    notice,
    number,
    percent,
    row,
    table,
    with_code,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

CHANGES = "/console/changes"
_VALUES = 20
"""The most values shown of a proposal."""
_ALONE = (("1h", "1 h"), ("6h", "6 h"), ("24h", "24 h"))
"""For how long somebody may publish alone."""
_PATHS = {
    "rule": "rules",
    "scorecard": "scorecards",
    "event_type": "event-types",
    "definitions": "definitions",
}
"""Where the interface has each kind of file."""


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


async def waiting_proposals(here: Visit, waiting: list[JsonObject]) -> Html:
    """Show the open proposals, each with its changes and the possible actions."""
    if not waiting:
        return element("p", here.words("changes.none_waiting"), class_="empty")
    shown = [await _proposal(here, each) for each in waiting]
    return element("section", element("h2", here.words("changes.waiting")), *shown)


async def _proposal(here: Visit, proposal: JsonObject) -> Html:
    facts = (
        element("div", element("dt", here.words(named)), element("dd", said))
        for named, said in _facts(here, proposal)
    )
    return element(
        "article",
        element("h3", f"{proposal['number']} · ", _what(here, proposal)),
        *_standing(here, proposal),
        element("dl", *facts, class_="facts"),
        _warnings(here, proposal),
        await _change(here, proposal),
        _decision(here, proposal),
        class_="entity",
    )


def _standing(here: Visit, proposal: JsonObject) -> Iterator[Html]:
    """Say that it is in force already, or that nobody can approve it any more."""
    if proposal["state"] == "alone":
        yield notice("alarm", here.words("changes.is_alone"))
    if reason := proposal.get("void"):
        yield notice("warning", here.words("changes.void", reason=reason))


def _facts(here: Visit, proposal: JsonObject) -> Iterator[tuple[str, str]]:
    yield "changes.by", proposal["by"]
    yield "changes.at", instant(here, proposal["at"])
    yield "changes.note", proposal["note"]
    if proposal["kind"] is not None:
        base = _base(proposal)
        yield "changes.base", here.words("changes.nothing") if base is None else f"v{base}"
    for name, of in (("until", "rule.until"), ("applies_from", "changes.applies_from")):
        if proposal[name] is not None:
            yield of, instant(here, proposal[name])
    # A node of the release before says neither when a proposal ends nor what holds until when.
    if (end := proposal.get("expires_at")) is not None:
        yield "changes.expires", instant(here, end, "%d %b %H:%M")
    if proposal["state"] == "alone":
        yield "changes.alone_by", proposal["decided_by"]
        yield "rule.reason", proposal["reason"]
        end = proposal.get("alone_until")
        yield (
            "changes.alone_until",
            here.words("changes.over") if end is None else instant(here, end),
        )


def _base(proposal: JsonObject) -> str | None:
    """Return the version that was active at the proposal; None without one."""
    base: str = proposal["base"].removeprefix("version ")
    return base if base.isdigit() else None


def _warnings(here: Visit, proposal: JsonObject) -> Html:
    """Say what nobody has tried of the version, and what it was warned of."""
    items = [
        element(
            "li",
            element("span", each["field"].partition(":")[2], class_="place"),
            " ",
            with_code(each["message"]),
        )
        for each in proposal["warnings"]
    ]
    if proposal["untested"]:
        items.insert(0, element("li", with_code(here.words("changes.untested"))))
    return notice("warning", element("ul", *items)) if items else Html("")


def _what(here: Visit, proposal: JsonObject) -> Html:
    words, name = here.words, proposal["name"]
    if proposal["settings"] is not None:
        return join_html(words("changes.settings"))
    if proposal["entries"] is not None:
        wanted = proposal["entries"]
        said = words(f"changes.entries_{wanted['action']}", name=name, count=wanted["count"])
        return element("a", said, href=f"/console/lists/{segment(name)}")
    said = words(f"changes.{proposal['action']}", name=name, version=proposal["version"])
    if (trial := proposal["rollout"]) is not None:
        by = words(f"by.{trial['by']}")
        said += f" · {trial['percent']}\u202f% · {words('rule.rollout_by')} {by}"
    if proposal["kind"] != "rule":
        return element("span", said)
    return element("a", said, href=rule_address(name))


async def _change(here: Visit, proposal: JsonObject) -> Html:
    """Show what would be different, and how many payments it would have decided otherwise."""
    if proposal["settings"] is not None:
        return await _settings(here, proposal["settings"])
    if proposal["entries"] is not None:
        return await _entries(here, proposal)
    if proposal["version"] is None:
        return Html("")
    return join_html(await _meaning(here, proposal), _backtest(here, proposal))


async def _settings(here: Visit, wanted: JsonObject) -> Html:
    """Show each setting that would change, beside what it is now for those who may read it."""
    may_read = here.may("settings:read")
    account = (await here.client.get("/v1/account"))["account"] if may_read else {}
    now = dict(_flat(account))
    items = [
        element(
            "li",
            element("code", name),
            " ",
            join_html(element("del", now[name]), " ") if name in now else "",
            element("ins", value),
        )
        for name, value in _flat(wanted)
        if now.get(name) != value
    ]
    return element("ul", *items)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting as `thresholds.deny`, with its value."""
    for name, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            is_plain = isinstance(value, str | Decimal)
            yield f"{prefix}{name}", str(value) if is_plain else json.dumps(value, default=str)


async def _entries(here: Visit, proposal: JsonObject) -> Html:
    """Show the first entries that a proposal adds to a list, or removes, and lead to a file of
    all; and which payments of the last week had them.
    """
    words, wanted = here.words, proposal["entries"]
    items = []
    for each in wanted["entries"][:_VALUES]:
        end = each.get("expires_at")
        until = "" if end is None else join_html(" ", words("rule.until"), " ", instant(here, end))
        # A table's columns decide as much as its value does.
        columns = "".join(f" {key} {held}" for key, held in (each.get("columns") or {}).items())
        items.append(element("li", element("code", each["value"]), columns, until))
    address = f"{CHANGES}/{proposal['number']}/entries.csv"
    rest = element("p", "… ", element("a", words("payments.csv"), href=address))
    values = [each["value"] for each in wanted["entries"]]
    may_count = here.may("rules:read") and here.may("personal:read")
    return join_html(
        element("ul", *items),
        rest if wanted["count"] > len(items) else "",
        await hits_of_values(here, proposal["name"], values) if may_count else "",
    )


async def _meaning(here: Visit, proposal: JsonObject) -> Html:
    """Show how the version differs in meaning from the one that was active at the proposal; where
    there was none, its text.
    """
    base, version = _base(proposal), str(proposal["version"])
    path = f"{_PATHS[proposal['kind']]}/{segment(proposal['name'])}"
    if base is None:
        found = await here.client.get(f"/v1/{path}/versions/{version}")
        text = element("code", found[proposal["kind"]]["text"].rstrip())
        return element(
            "details",
            element("summary", here.words("rule.text", version=version)),
            element("pre", text, class_="rule", tabindex="0"),
        )
    found = await here.client.get(f"/v1/{path}/diff", {"from": base, "to": version})
    items = [element("li", difference(each)) for each in found["differences"]]
    said = here.words("changes.meaning", base=base)
    is_rule = proposal["kind"] == "rule"
    beside = target(f"/console/{path}/compare", before=base, after=version)
    return join_html(
        element("h4", element("a", said, href=beside) if is_rule else said),
        element("ul", *items) if items else element("p", here.words("rule.same"), class_="empty"),
    )


def _backtest(here: Visit, proposal: JsonObject) -> Html:
    words, figures = here.words, proposal["backtest"]
    if proposal["kind"] != "rule":
        return Html("")
    if figures is None:
        try_it = backtest_button(here, proposal["name"], proposal["version"])
        return element(
            "div",
            element("p", words("changes.no_backtest"), class_="hints"),
            control_if_allowed(here, "rules:write", try_it),
            class_="line",
        )
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
        share=percent(here, figures["changed"], figures["payments"], 2),
        since=figures["since"][:10],
    )
    return join_html(
        element("h4", said),
        table([words("rule.turn"), words("payment.payments")], rows, said, numeric=(1,))
        if rows
        else "",
    )


def _decision(here: Visit, proposal: JsonObject) -> Html:
    words, is_alone = here.words, proposal["state"] == "alone"
    is_own, may_publish = proposal["by"] == here.owner, here.may("rules:publish")
    is_void = bool(proposal.get("void"))
    controls = []
    # First the button that Enter presses after the reason, which is one for refusing.
    if may_publish or (is_own and not is_alone):
        said = "take_back" if is_own and not is_alone else "refuse"
        controls.append(
            element("button", words(f"changes.{said}"), name="act", value="refuse", class_="quiet")
        )
    if may_publish and not is_own and not is_void:
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
    if is_alone or is_void or not _may_be_alone(proposal):
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
