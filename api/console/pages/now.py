"""The present: unusual values first, then the decisions over time, then the conditions that are
met.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote_plus

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.alarm import denied_of, find_cause
from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import CHART_SCRIPTS, first_page, page
from tollkeeper.api.console.pages.alerts import alert_address, alert_title, mark_text
from tollkeeper.api.console.pages.lists import Held, find_held, list_address
from tollkeeper.api.console.parts import (
    bar,
    card_table,
    chart,
    control_if_allowed,
    decimal,
    filter_member,
    in_turn,
    instant,
    mask_alert_key,
    mask_entity,
    notice,
    number,
    payments_link,
    percent,
    read_instant,
    row,
    since_text,
    table,
    text_of,
    written,
)
from tollkeeper.api.console.rule_lists import blocking_lists, read_live_rules
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_REACH = "6h"
_LATELY = 15
"""So many minutes are now; the others are what is usual."""
_SHORTEST = 30
"""The shortest span in minutes of the decisions shown, for an account that has just begun."""
_HOUR = timedelta(hours=1)
_HIDDEN = ("rule", "condition")
"""Movers that result from the account's own rules; conditions have a table of their own."""
_SHOWN = 8


@get("/console")
async def now(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    if not here.may("payments:read"):
        return go_to(first_page(here))
    ask = here.client.get
    hour = {"since": text_of(here.now - _HOUR), "until": text_of(here.now)}
    minute = here.now.replace(second=0, microsecond=0)
    lately = text_of(minute - timedelta(minutes=_LATELY - 1))
    challenged = {"action": "challenge"}
    flow, *passing, firing, usual, alerts, alone, moving, marks = await asyncio.gather(
        ask("/v1/figures", {"since": _REACH, "every": "minute"}),
        ask("/v1/figures", {**challenged, "since": _REACH, "until": lately}),
        ask("/v1/figures", {**challenged, "since": lately, "until": text_of(here.now)}),
        ask("/v1/figures", {**hour, "by": "condition"}),
        ask("/v1/figures", {"since": "1w", "by": "condition"}),
        ask("/v1/alerts", {"limit": "5"}),
        _alone(here),
        _moving(here, hour),
        _published(here),
    )
    shown = moving[:_SHOWN]
    behind = [_mover_address(here, mover) for mover in shown]
    words = here.words
    shows_movers = not here.merchants
    content = element(
        "div",
        element("h1", words("now.title")),
        alone,
        await _banner(here, moving, firing["figures"]) if shows_movers else Html(""),
        await in_turn(here, _tiles, flow["figures"], [each["figures"] for each in passing]),
        await in_turn(here, _flow, flow["figures"], marks),
        element(
            "div",
            element(
                "section",
                element("h2", words("now.movers")),
                await in_turn(here, _movers, shown, behind),
            )
            if shows_movers
            else Html(""),
            element(
                "section",
                element("h2", words("now.firing")),
                await in_turn(here, _firing, firing["figures"], usual["figures"]),
            ),
            class_="columns",
        ),
        element("section", element("h2", words("now.alerts")), _alerts(here, alerts["alerts"])),
        id="now",
        hx_get="/console",
        hx_trigger="every 15s",
        hx_select="#now",
        hx_swap="outerHTML",
    )
    return html(page(here, words("now.title"), content, scripts=CHART_SCRIPTS))


async def _moving(here: Visit, hour: dict[str, str]) -> list[JsonObject]:
    """Return the unusual values; none for a user limited to some merchants, since they are computed
    over all.
    """
    if here.merchants:
        return []
    movers = (await here.client.get("/v1/figures/movers", {**hour, "limit": "30"}))["movers"]
    return [mover for mover in movers if mover["by"] not in _HIDDEN]


async def _published(here: Visit) -> list[JsonObject]:
    """Return what was published during the time shown, for those who may read the log: a sudden
    change may have its cause there.
    """
    if not here.may("audit:read"):
        return []
    query = {"since": text_of(here.now - 6 * _HOUR), "action": "activated", "limit": "20"}
    published: list[JsonObject] = (await here.client.get("/v1/audit", query))["audit"]
    return [each for each in published if each["subject"].startswith("rule ")]


async def _alone(here: Visit) -> Html:
    """Show what was published alone and still waits for approval."""
    if not here.may("rules:read"):
        return Html("")
    proposals = (await here.client.get("/v1/proposals"))["proposals"]
    return join_html(
        *(
            notice(
                "alarm",
                element(
                    "strong",
                    here.words(
                        "now.alone" if each["entries"] is None else "now.alone_entries",
                        name=each["name"],
                        version=each["version"],
                        by=each["decided_by"],
                        reason=each["reason"],
                    ),
                ),
                " ",
                element("a", here.words("now.look"), href="/console/changes", class_="button"),
            )
            for each in proposals
            if each["state"] == "alone"
        )
    )


def _mover_address(here: Visit, mover: JsonObject) -> str | None:
    """Return the address of a mover's payments of the last hour; a personal value is referred to by a
    payment. None for those who may not search payments.
    """
    if not here.may("personal:read"):
        return None
    by, value = mover["by"], mover["value"]
    if mask_entity(by, value) != value:
        return target("/console/payments", of=mover["newest"], by=by, q="since:1h")
    # In a search, a network is written as an `ip`.
    named = "ip" if by == "network" else by
    return target("/console/payments", q=f"{filter_member(named, value)} since:1h")


def _exactly(here: Visit, count: int, address: str | None) -> Html:
    """Show a mover's count, linked to exactly the counted payments, without later ones."""
    hour = quote_plus(_last_hour(here), safe=":")
    exact = None if address is None else address.replace("since:1h", hour)
    return element("span" if exact is None else "a", number(here, count), href=exact)


def _last_hour(here: Visit) -> str:
    return f"since:{text_of(here.now - _HOUR)} until:{text_of(here.now)}"


async def _banner(here: Visit, movers: list[JsonObject], firing: list[JsonObject]) -> Html:
    # The figures of all conditions and of none together cover all traffic.
    cause = find_cause(movers, [each["tally"] for each in firing])
    if cause is None:
        return notice("calm", here.words("now.calm"))
    held = await _held_in(here, cause)
    address = _mover_address(here, cause)
    return notice(
        "alarm" if held is None else "good",
        element(
            "strong",
            here.words(
                "now.alarm",
                by=here.words(f"by.{cause['by']}"),
                value=mask_entity(cause["by"], cause["value"]),
                payments=number(here, cause["payments"]),
                refused=percent(here, denied_of(cause), cause["payments"]),
            ),
        ),
        " ",
        Html("") if held is None else _contained(here, held),
        " ",
        Html("")
        if address is None
        else element("a", here.words("now.look"), href=address, class_="button quiet"),
        " ",
        control_if_allowed(
            here,
            "lists:write",
            element(
                "a",
                here.words("now.contain" if held is None else "now.others"),
                href="/console/contain",
                class_="button" if held is None else "button quiet",
            ),
        ),
    )


async def _held_in(here: Visit, mover: JsonObject) -> Held | None:
    """Return the list by which a live rule already stops the value that stands out."""
    if not here.may("rules:read"):
        return None
    lists = blocking_lists(await read_live_rules(here), mover["by"])
    return await find_held(here, lists, mover["value"])


def _contained(here: Visit, held: Held) -> Html:
    """Tell which list already has the value that stands out."""
    name = element("a", held.list, href=list_address(held.list))
    if held.until is None:
        return element("span", here.words("now.held"), " ", name)
    end = written(here, held.until, "%d %b %H:%M")
    return element("span", here.words("now.held_until", until=end), " ", name)


def _tiles(here: Visit, flow: list[JsonObject], passing: list[list[JsonObject]]) -> Html:
    """The last quarter of an hour in shares, beside the hours before; `passing` are the challenged
    payments of the hours before and of the quarter.
    """
    lately, earlier = flow[-_LATELY:], flow[:-_LATELY]
    challenged, challenged_lately = passing
    tiles = []
    for name, last, before, count in (
        ("deny", lately, earlier, lambda tally: tally["actions"]["deny"]),
        ("challenge", lately, earlier, lambda tally: tally["actions"]["challenge"]),
        (
            "challenge_passed",
            challenged_lately,
            challenged,
            lambda tally: tally["statuses"]["succeeded"],
        ),
        ("unfinished", lately, earlier, lambda tally: tally["statuses"]["initiated"]),
    ):
        begun = any(each["tally"]["payments"] for each in before)
        tiles.append(
            element(
                "div",
                element("dt", here.words(f"now.{name}")),
                element(
                    "dd",
                    _share(here, last, count),
                    element(
                        "small",
                        here.words("now.usual", share=_share(here, before, count))
                        if begun
                        else here.words("now.begun"),
                    ),
                ),
            )
        )
    rate = sum(each["tally"]["payments"] for each in lately) / max(1, len(lately))
    first = element(
        "div",
        element("dt", here.words("now.rate")),
        element("dd", decimal(here, rate, 1), element("small", here.words("now.per_minute"))),
    )
    return element("dl", first, *tiles, class_="tiles")


def _share(here: Visit, spans: list[JsonObject], count: Callable[[JsonObject], int]) -> str:
    """Return what share of the payments `count` counts; a dash without payments."""
    tallies = [each["tally"] for each in spans]
    return percent(here, sum(map(count, tallies)), sum(each["payments"] for each in tallies))


def _flow(here: Visit, flow: list[JsonObject], published: list[JsonObject]) -> Html:
    """Chart the decisions by minute, with publications as marks."""
    actions = ("deny", "challenge", "allow")
    begun = next((at for at, each in enumerate(flow) if each["tally"]["payments"]), len(flow))
    flow = flow[min(begun, len(flow) - _SHORTEST) :]
    moments = [read_instant(each["start"]).timestamp() for each in flow]
    series = [[each["tally"]["actions"][action] for each in flow] for action in actions]
    quarter = [flow[start : start + 15] for start in range(0, len(flow), 15)]
    shown = table(
        [here.words("payments.time"), *(here.words(f"action.{action}") for action in actions)],
        [
            row(
                read_instant(part[0]["start"]).astimezone(here.zone).strftime("%H:%M"),
                *(_decided_link(here, part, action) for action in actions),
                numeric=(1, 2, 3),
            )
            for part in quarter
        ],
        here.words("now.flow"),
        numeric=(1, 2, 3),
    )
    minutes: dict[int, list[str]] = {}
    for each in reversed(published):
        minute = int(read_instant(each["at"]).timestamp()) // 60 * 60
        minutes.setdefault(minute, []).append(_publication(each))
    marks = [
        [at, names[0] if len(names) == 1 else here.words("now.versions", count=len(names))]
        for at, names in minutes.items()
    ]
    said = [
        element("li", instant(here, each["at"], "%H:%M"), " ", _publication(each))
        for each in published
    ]
    return chart(
        here.words("now.flow"),
        [here.words(f"action.{action}") for action in actions],
        moments,
        series,
        join_html(shown, element("p", here.words("now.published")), element("ul", *said))
        if said
        else shown,
        here.words("frame.as_table"),
        data_marks=json.dumps(marks),
        data_kinds="deny challenge allow",
        data_across=here.words("payments.time"),
        data_select="/console/payments",
        data_zone=here.zone.key,
    )


def _publication(change: JsonObject) -> str:
    """Describe what was published, and by whom."""
    name = change["subject"].removeprefix("rule ")
    return f"{name} v{change['detail']['version']} · {change['by']}"


def _decided_link(here: Visit, part: list[JsonObject], action: str) -> Html:
    """Show how many payments of some minutes got an action, linked to them."""
    count = sum(each["tally"]["actions"][action] for each in part)
    span = f"since:{part[0]['start']} until:{part[-1]['end']}"
    return payments_link(here, number(here, count), f"action:{action} {span}")


def _movers(here: Visit, movers: list[JsonObject], behind: list[str | None]) -> Html:
    if not movers:
        return element("p", here.words("now.no_movers"), class_="empty")
    titles = ("what", "payments", "usually", "refused")
    return table(
        [here.words(f"now.{title}") for title in titles],
        [
            row(
                element(
                    "span" if address is None else "a",
                    element("small", here.words(f"by.{mover['by']}")),
                    " ",
                    mask_entity(mover["by"], mover["value"]),
                    href=address,
                ),
                _exactly(here, mover["payments"], address),
                decimal(here, mover["usual"], 1),
                join_html(
                    bar(denied_of(mover) / mover["payments"], "deny"),
                    element(
                        "span", percent(here, denied_of(mover), mover["payments"]), class_="number"
                    ),
                ),
                numeric=(1, 2, 3),
            )
            for mover, address in zip(movers, behind, strict=True)
        ],
        here.words("now.movers"),
        numeric=(1, 2, 3),
        class_="rows",
    )


def _firing(here: Visit, firing: list[JsonObject], usual: list[JsonObject]) -> Html:
    week = {each["by"]: each["tally"]["payments"] / 168 for each in usual}
    lately = {each["by"]: each["tally"]["payments"] for each in firing}
    names = [name for name in {**lately, **week} if name != "none"]
    if not names:
        return element("p", here.words("now.nothing_fires"), class_="empty")
    return table(
        [here.words(f"now.{title}") for title in ("condition", "hour", "week")],
        [
            row(
                payments_link(here, name, f"condition:{name} since:1h"),
                payments_link(
                    here, number(here, lately.get(name, 0)), f"condition:{name} {_last_hour(here)}"
                ),
                decimal(here, week.get(name, 0.0), 1),
                numeric=(1, 2),
            )
            for name in sorted(names, key=lambda name: -lately.get(name, 0))
        ],
        here.words("now.firing"),
        numeric=(1, 2),
        class_="rows",
    )


def _alerts(here: Visit, alerts: list[JsonObject]) -> Html:
    words = here.words
    if not alerts:
        return element("p", words("alerts.none"), class_="empty")
    return card_table(
        [words(f"alerts.{title}") for title in ("monitor", "key", "state", "at")],
        [
            row(
                element("a", alert_title(each), href=alert_address(each)),
                mask_alert_key(each),
                mark_text(here, each["mark"]),
                since_text(here, each["at"]),
            )
            for each in alerts
        ],
        words("now.alerts"),
        class_="rows",
    )
