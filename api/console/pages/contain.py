"""Contain an attack: what the payments behind an alert, or the unusual ones of now, share, and a
temporary block of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from textwrap import dedent
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.alarm import find_cause
from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import IncompleteFormError, read_form
from tollkeeper.api.console.list_form import BLOCK_HOURS, reason_field
from tollkeeper.api.console.page import CHART_SCRIPTS, page
from tollkeeper.api.console.pages.alerts import (
    AROUND,
    LONE_ALERT,
    alert_address,
    alert_title,
    mark_text,
)
from tollkeeper.api.console.pages.lists import (
    approval_note,
    find_held,
    list_address,
    send_entries,
)
from tollkeeper.api.console.pages.payment import entities
from tollkeeper.api.console.pages.rules import rule_address
from tollkeeper.api.console.pages.score import scores_beside
from tollkeeper.api.console.parts import (
    Row,
    card_table,
    choices,
    control_if_allowed,
    decimal,
    field,
    filter_member,
    instant,
    legible,
    mask_alert_key,
    mask_entity,
    notice,
    number,
    payments_link,
    proposed_address,
    read_instant,
    refuse_unseen,
    row,
    text_of,
    with_moments,
)
from tollkeeper.api.console.rule_lists import FIELDS, blocking_lists, read_live_rules
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

CONTAIN = "/console/contain"
_WATCHING = re.compile(
    r"^ *(metric|monitor) +(\w+).*(?:\n(?! *(?:metric|monitor|label|test)\b).*)*", re.MULTILINE
)
"""A metric or a monitor in the text of an event type, up to the next item."""
_SUGGESTED = 6
"""The most values that are suggested."""


@dataclass(frozen=True, slots=True)
class BlockOffer:
    """An unusual value, and what blocking it would have done.

    `held_by` is the one of `lists` that already has the value; where there are none, `rule` is the
    active one to draft a condition in: that which decided the newest payment, or else any. `span` is
    the 24 hours of the counts, as a search, `hour` the one in which the value is unusual.
    """

    mover: JsonObject
    hour: str
    span: str
    day: int
    denied: int
    passed: int
    lists: tuple[str, ...]
    held_by: str | None
    rule: str | None


@get("/console/alerts/{id_:str}")
async def alert(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = (await here.client.get(f"/v1/alerts/{segment(id_)}"))["alert"]
    until = read_instant(found["at"])
    values = [(name, legible(here, str(value))) for name, value in found["values"].items()]
    facts = [
        (words("alerts.at"), instant(here, found["at"])),
        (words("alerts.key"), mask_alert_key(found)),
        *values,
        (words("alerts.state"), mark_text(here, found["mark"])),
        (words("alerts.note"), found["mark"]["note"]),
    ]
    is_lone = found["type"] == LONE_ALERT
    if not is_lone:
        facts.append((words("alerts.payments"), _behind(here, until)))
    content = join_html(
        element("h1", alert_title(found)),
        _done(here),
        element(
            "dl",
            *(
                element("div", element("dt", name), element("dd", said))
                for name, said in facts
                if said
            ),
            class_="facts",
        ),
        element("p", element("a", words("alerts.decide"), href="/console/changes", class_="button"))
        if is_lone
        else Html(""),
        control_if_allowed(here, "labels:write", _mark_form(here, found)),
        Html("") if is_lone else await _watch(here, found),
        Html("") if is_lone else await _payments(here, until, found),
    )
    return html(page(here, words("frame.alerts"), content, scripts=CHART_SCRIPTS))


async def _watch(here: Visit, found: JsonObject) -> Html:
    """Show what the monitor and its metrics ask, as its event type is live now."""
    if here.merchants or not here.may("rules:read"):
        return Html("")
    path = f"/v1/event-types/{segment(found['type'])}"
    text = (await here.client.get(path))["event_type"]["text"]
    wanted = {("monitor", found["monitor"]), *(("metric", name) for name in found["values"])}
    items = [
        dedent(each[0]).strip() for each in _WATCHING.finditer(text) if each.group(1, 2) in wanted
    ]
    return element(
        "details",
        element("summary", here.words("alerts.watch")),
        element("pre", element("code", "\n\n".join(items)), class_="rule", tabindex="0"),
    )


def _behind(here: Visit, until: datetime) -> Html:
    """Link to the payments of the hour before an alert."""
    query = f"since:{text_of(until - AROUND)} until:{text_of(until)}"
    return payments_link(here, here.words("alerts.behind"), query)


async def _payments(here: Visit, until: datetime, found: JsonObject) -> Html:
    """Show the payments behind an alert: their scores, and what they share."""
    since = until - AROUND
    return join_html(
        # Up to an hour after the alert, as an attack goes on. Movers are computed over all
        # merchants.
        Html("")
        if here.merchants
        else await _suggestions(here, min(here.now, until + AROUND), found),
        await scores_beside(here, since, until),
    )


@get(CONTAIN)
async def outbreak(request: Request[Any, Any, Any]) -> Response[str]:
    """Show what is unusual now, without an alert."""
    here = await visit(request)
    content = join_html(
        element("h1", here.words("contain.outbreak")),
        _done(here),
        await _suggestions(here, here.now, {"id": "", "key": (), "title": ""}),
    )
    return html(page(here, here.words("contain.title"), content))


@post("/console/alerts/{id_:str}")
async def mark(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    """Acknowledge the alert, close it, or open it again."""
    here = await visit(request)
    sent = await read_form(request)
    found = (await here.client.get(f"/v1/alerts/{segment(id_)}"))["alert"]
    if sent.get("expected") not in ("", _marked_at(found)):
        refuse_unseen(here.words("error.unseen"), ("alert.state",))
    await _mark(here, id_, sent["state"], sent.get("note"))
    return go_to(target(f"/console/alerts/{segment(id_)}", marked="1"))


@post(CONTAIN)
async def contain(request: Request[Any, Any, Any]) -> Response[str]:
    """Add the chosen values to their lists until a time, and acknowledge the alert; or propose
    that.
    """
    here = await visit(request)
    sent = await read_form(request)
    if sent["span"] not in BLOCK_HOURS:
        raise IncompleteFormError("span")
    end = here.now + timedelta(hours=BLOCK_HOURS[sent["span"]])
    id_ = sent.get("alert")
    back = f"/console/alerts/{segment(id_)}" if id_ else CONTAIN
    picked = sent.all("pick")
    if not picked:
        return go_to(target(back, contained="0"))
    blocked: dict[str, list[JsonObject]] = {}
    for each in picked:
        by, _, like = each.partition(":")
        shown = (await here.client.get(f"/v1/payments/{segment(like)}"))["payment"]
        value = entities(shown).get(by)
        if value is None:
            raise IncompleteFormError("pick")
        entry = {"value": value, "expires_at": text_of(end), "note": sent.get("reason")}
        blocked.setdefault(sent[f"list_{by}"], []).append(entry)
    if here.list_approval:
        numbers = [
            await send_entries(here, name, entries, sent.get("reason"))
            for name, entries in blocked.items()
        ]
        return go_to(proposed_address(*numbers))
    for name, entries in blocked.items():
        path = f"/v1/lists/{segment(name)}/entries"
        await here.client.send("PUT", path, body={"entries": entries})
    if id_ and here.may("labels:write"):
        await _mark(here, id_, "acknowledged", sent.get("reason"))
    return go_to(target(back, contained=str(len(picked)), until=text_of(end)))


async def _mark(here: Visit, id_: str, state: str, note: str) -> None:
    body = {"alert": {"state": state, "note": note}}
    await here.client.send("PUT", f"/v1/alerts/{segment(id_)}", body=body)


def _marked_at(alert: JsonObject) -> str:
    """Return which mark an alert has."""
    return alert["mark"]["at"] or "unmarked"


def _done(here: Visit) -> Html:
    if here.query.get("contained") == "0":
        return notice("warning", here.words("contain.none_picked"))
    if "contained" in here.query and "until" in here.query:
        count, end = here.query["contained"], here.query["until"]
        return notice(
            "good", with_moments(here, here.words("contain.done", count=count, until=end))
        )
    return notice("good", here.words("alerts.done_marked")) if "marked" in here.query else Html("")


def _mark_form(here: Visit, found: JsonObject) -> Html:
    words, state = here.words, found["mark"]["state"]
    ways = {
        "open": ("acknowledge", "close"),
        "acknowledged": ("close",),
        "closed": ("reopen",),
    }[state]
    states = {"acknowledge": "acknowledged", "close": "closed", "reopen": "open"}
    buttons = [
        element("button", words(f"alerts.{way}"), name="state", value=states[way], class_="quiet")
        for way in ways
    ]
    return element(
        "form",
        element("input", type="hidden", name="expected", value=_marked_at(found)),
        field(words("alerts.note"), element("input", name="note", maxlength="500")),
        *buttons,
        method="post",
        action=alert_address(found),
        data_kept="",
        class_="line",
    )


async def _suggestions(here: Visit, until: datetime, alert: JsonObject) -> Html:
    """Suggest values that had more payments than usual in the hour before, each with the effect of
    blocking it.

    Values in the `alert`'s key come first, since other attacks may be larger at the moment.
    """
    if not here.may("personal:read"):
        return Html("")
    words = here.words
    query = {"since": text_of(until - AROUND), "until": text_of(until)}
    movers, rules = await asyncio.gather(_movers(here, query), read_live_rules(here))
    wanted = sorted(movers, key=lambda mover: mover["value"] not in alert["key"])[:_SUGGESTED]
    if not wanted:
        return element("p", words("contain.nothing"), class_="empty")
    weighed = await asyncio.gather(*(_weigh_block(here, mover, until, rules) for mover in wanted))
    titles = ("pick", "hour", "usually", "day", "denied", "passed", "list")
    open_ = [each for each in weighed if each.lists and each.held_by is None]
    # A hurried click must not block a value that mostly paid.
    harmless = next((each for each in open_ if 2 * each.passed <= each.day), None)
    rows = [_row(here, each, chosen=each is harmless) for each in weighed]
    shown = join_html(
        card_table(
            [words(f"contain.{title}") for title in titles],
            rows,
            words("contain.suggested"),
            numeric=(1, 2, 3, 4, 5),
        ),
        element("p", words("contain.lists_note"), class_="hints"),
        approval_note(here),
    )
    controls = element(
        "div",
        field(
            words("contain.until"),
            choices("span", [(span, f"{hours} h") for span, hours in BLOCK_HOURS.items()], "6h"),
        ),
        reason_field(here, words("contain.reason"), "reason", alert["title"] or ""),
        element("button", words("contain.block")),
        class_="line",
    )
    return element(
        "section",
        element("h2", words("contain.suggested")),
        element(
            "form",
            element("input", type="hidden", name="alert", value=alert["id"]),
            shown,
            controls,
            method="post",
            action=CONTAIN,
            data_kept="",
        )
        if here.may("lists:write") and open_
        else shown,
    )


async def _movers(here: Visit, query: Mapping[str, str]) -> list[JsonObject]:
    """Return the values that can be blocked, the most unusual first, except that the likely cause
    of the denials leads.
    """
    moving, every = await asyncio.gather(
        here.client.get("/v1/figures/movers", {**query, "limit": "30"}),
        here.client.get("/v1/figures", query),
    )
    movers = [mover for mover in moving["movers"] if mover["by"] in FIELDS]
    cause = find_cause(movers, [each["tally"] for each in every["figures"]])
    return sorted(movers, key=lambda mover: mover is not cause)


async def _weigh_block(
    here: Visit, mover: JsonObject, until: datetime, rules: Mapping[str, str]
) -> BlockOffer:
    """Return the effect of a block."""
    by, value = mover["by"], mover["value"]
    hour, span = (
        f"since:{text_of(until - reach)} until:{text_of(until)}"
        for reach in (AROUND, timedelta(days=1))
    )
    query = f"{filter_member(by, value)} {span}"
    every = await here.client.aside("/v1/figures", {"q": query, "by": "status"})
    of_status = {each["by"]: each["tally"] for each in every["figures"]}
    day = sum(tally["payments"] for tally in of_status.values())
    denied = sum(tally["actions"]["deny"] for tally in of_status.values())
    paid = of_status.get("succeeded")
    passed = 0 if paid is None else paid["payments"] - sum(paid["labels"].values())
    lists = blocking_lists(rules, by)
    held = await find_held(here, lists, value)
    held_by = None if held is None else held.list
    rule = None if lists else await _deciding_rule(here, mover["newest"], rules)
    return BlockOffer(mover, hour, span, day, denied, passed, lists, held_by, rule)


async def _deciding_rule(here: Visit, payment: str, rules: Mapping[str, str]) -> str | None:
    """Return the active rule that decided a payment, or else any, as for one removed meanwhile."""
    some = next(iter(rules), None)
    try:
        found = await here.client.aside(f"/v1/payments/{segment(payment)}", {})
    except RefusalError as refusal:
        if refusal.status != HTTPStatus.NOT_FOUND:
            raise
        return some
    decided = found["payment"]["analyses"]["rule"]
    return decided["name"] if decided and decided["name"] in rules else some


def _row(here: Visit, offer: BlockOffer, *, chosen: bool) -> Row:
    mover, words = offer.mover, here.words
    by = mover["by"]
    shown = mask_entity(by, mover["value"])
    name = f"{words(f'by.{by}')} {shown}"
    # Links to a personal value go by a payment that has it; others contain the value.
    is_masked = shown != mover["value"]
    shared = {"of": mover["newest"], "by": by} if is_masked else {}
    own = "" if is_masked else f"{filter_member(by, shown)} "

    def link(count: int, more: str = "") -> Html:
        return payments_link(here, number(here, count), f"{own}{offer.span}{more}", **shared)

    return row(
        _pick(here, offer, chosen=chosen)
        if offer.lists and offer.held_by is None
        else _named(here, offer),
        payments_link(here, number(here, mover["payments"]), f"{own}{offer.hour}", **shared),
        decimal(here, mover["usual"], 1),
        link(offer.day),
        link(offer.denied, " action:deny"),
        link(offer.passed, " status:succeeded label:none"),
        _where(here, by, offer, name),
        numeric=(1, 2, 3, 4, 5),
    )


def _pick(here: Visit, offer: BlockOffer, *, chosen: bool) -> Html:
    """A box to choose the value for blocking."""
    box = element(
        "input",
        type="checkbox",
        name="pick",
        value=f"{offer.mover['by']}:{offer.mover['newest']}",
        checked="" if chosen else None,
    )
    said = element("span", here.words("contain.pick"), " ", class_="unseen")
    return element("label", box, said, _named(here, offer), class_="choice")


def _named(here: Visit, offer: BlockOffer) -> Html:
    by, value = offer.mover["by"], offer.mover["value"]
    kind = element("small", here.words(f"by.{by}"))
    return element("span", kind, " ", mask_entity(by, value))


def _where(here: Visit, by: str, offer: BlockOffer, name: str) -> Html:
    words = here.words
    if offer.held_by is not None:
        entries = element("a", offer.held_by, href=list_address(offer.held_by))
        return join_html(
            element("span", words("contain.held"), class_="state closed"), " ", entries
        )
    if offer.lists:
        options = [(each, each) for each in offer.lists]
        return choices(f"list_{by}", options, aria_label=f"{words('contain.list')}: {name}")
    if offer.rule is None or not here.may("rules:write"):
        return element("span", words("contain.no_list"), class_="detail")
    draft = target(f"{rule_address(offer.rule)}/edit", by=by, like=offer.mover["newest"])
    return element("a", words("contain.condition"), href=draft)
