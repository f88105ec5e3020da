"""Elements shared by pages: actions, times, money, masked values, rows of payments, charts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.visit import Visit, target
from tollkeeper.api.html import Html, element, join_html

_SPECIAL = re.compile(r'["\\]')
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")

_P = ParamSpec("_P")
_Made = TypeVar("_Made")

ShowTime: TypeAlias = Callable[[Visit, str], Html]
"""How a page shows when a payment came."""
_WITHOUT_MINOR_UNIT = frozenset(
    [
        "BIF",
        "CLP",
        "DJF",
        "GNF",
        "ISK",
        "JPY",
        "KMF",
        "KRW",
        "PYG",
        "RWF",
        "UGX",
        "UYI",
        "VND",
        "VUV",
        "XAF",
        "XOF",
        "XPF",
    ]
)
"""Currencies whose amounts have no decimals, by ISO 4217."""
SHAPES = {"allow": "●", "challenge": "▲", "deny": "■", "none": "–"}
"""Each action has a word and a shape besides its colour."""


def action_badge(visit: Visit, action: str | None) -> Html:
    name = action or "none"
    shape = element("span", SHAPES[name], aria_hidden="true")
    return element("span", shape, " ", visit.words(f"action.{name}"), class_=f"action {name}")


def label_badge(visit: Visit, label: str | None) -> Html:
    return (
        Html("")
        if label is None
        else element("span", visit.words(f"label.{label}"), class_=f"label {label}")
    )


def read_instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def instant(visit: Visit, text: str, form: str = "%d %b %H:%M:%S") -> Html:
    """Show a moment in the account's zone, with UTC as its tooltip."""
    return element("time", written(visit, read_instant(text), form), datetime=text, title=text)


def legible(visit: Visit, text: str) -> Html:
    """Show a text as it is, but a moment in the account's zone."""
    if _MOMENT.fullmatch(text):
        with suppress(ValueError):
            return instant(visit, text, "%d %b %Y %H:%M:%S")
    return join_html(text)


def with_moments(visit: Visit, text: str) -> Html:
    """Format a text of the interface, with its moments in the account's zone."""
    words, moments = _MOMENT.split(text), _MOMENT.findall(text)
    shown = (legible(visit, each) for each in moments)
    return join_html(
        words[0], *(part for pair in zip(shown, words[1:], strict=True) for part in pair)
    )


def separated(sign: str, parts: Iterable[str]) -> Html:
    """Join parts by a sign."""
    return Html(join_html(sign).join(map(join_html, parts)))


def written(visit: Visit, moment: datetime, form: str) -> str:
    """Format a moment in the account's zone, with the month in the page's language."""
    local = moment.astimezone(visit.zone)
    month = visit.words("frame.months").split()[local.month - 1]
    return local.strftime(form.replace("%b", month))


def since_text(visit: Visit, text: str | None) -> str:
    """Return how long ago a moment was, in one unit."""
    if text is None:
        return "–"
    seconds = max(0, int((visit.now - read_instant(text)).total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return visit.words(f"span.{unit}", n=seconds // length)
    return visit.words("span.s", n=seconds)


def number(visit: Visit, count: int | Decimal) -> str:
    """Format a count with thousands separators."""
    return localize(visit, f"{count:,}")


def decimal(visit: Visit, value: float | Decimal, places: int) -> str:
    """Format a number with this many decimals."""
    return localize(visit, f"{value:,.{places}f}")


def percent(
    visit: Visit,
    part: int | float | Decimal,
    whole: int | float | Decimal = 1,
    places: int = 0,
) -> str:
    """Format a share as a percentage; a dash if the whole is 0."""
    every = Decimal(whole)
    return "–" if not every else decimal(visit, 100 * Decimal(part) / every, places) + "\u202f%"


def money(visit: Visit, amount: Any, currency: str) -> str:
    """Format an amount; a dash for that of a payment which has none."""
    if amount is None:
        return "–"
    exact = Decimal(str(amount))
    places = 0 if currency in _WITHOUT_MINOR_UNIT and exact == int(exact) else 2
    return f"{decimal(visit, exact, places)}\u00a0{currency}"


def moneys(visit: Visit, sums: Mapping[str, Any]) -> list[str]:
    """Format amounts by currency, the largest first."""
    largest = sorted(sums.items(), key=lambda each: -Decimal(str(each[1])))
    return [money(visit, amount, currency) for currency, amount in largest]


def localize(visit: Visit, figure: str) -> str:
    """Convert a number such as `1,234.5` to the separators of the page's language."""
    signs = {",": visit.words("frame.thousands"), ".": visit.words("frame.point")}
    return "".join(signs.get(each, each) for each in figure)


def column(values: Sequence[str]) -> Html:
    """Stack the values of a cell, so that the column stays narrow."""
    lines = [part for value in values for part in (element("span", value), " ")]
    return element("span", *(lines or ["–"]), class_="lines")


def mask_card(card: JsonObject | None) -> str:
    """Mask a card; a dash if there is none, or its number was removed."""
    first, last = ((card or {}).get(name) or "" for name in ("bin", "last_four"))
    return f"{first[:4]}…{last[-2:]}" if first or last else "–"


def mask_email(email: str | None) -> str:
    if not email:
        return ""
    local, _, domain = email.partition("@")
    return f"{local[:1]}***@{domain}" if domain else f"{email[:1]}***"


def mask_ip(ip: str | None) -> str:
    if not ip:
        return ""
    if ":" in ip:
        return ":".join(ip.split(":")[:3]) + ":…"
    return ".".join(ip.split(".")[:2]) + ".*.*"


def mask_alert_key(alert: JsonObject) -> str:
    """Mask an alert's key. Only the monitor knows which fields it consists of, so what looks like a
    person's or a device's address is masked.
    """
    return ", ".join(_mask_address(str(value)) for value in alert["key"])


def _mask_address(value: str) -> str:
    if "@" in value:
        return mask_email(value)
    try:
        ip_address(value)
    except ValueError:
        return value
    return mask_ip(value)


def mask_id(value: str | None) -> str:
    return "" if not value else value if len(value) <= 4 else f"{value[:3]}…{value[-2:]}"


def mask_entity(by: str, value: str) -> str:
    """Mask a value of a payment, unless its kind isn't personal."""
    match by:
        case "card":
            return f"{value[:4]}…{value[-2:]}"
        case "email":
            return mask_email(value)
        case "ip":
            return mask_ip(value)
        case "user" | "device" | "order":
            return mask_id(value)
        case _:
            return value


def reason(visit: Visit, payment: JsonObject) -> str:
    """Return the reason of a decision: the condition, or else the score."""
    analyses = payment.get("analyses") or {}
    condition = (analyses.get("rule") or {}).get("condition")
    if condition:
        return f"{condition['id']}: {condition['name']}" if condition["name"] else condition["id"]
    bot = analyses.get("bot_behaviour")
    if bot and bot.get("action") in ("challenge", "deny"):
        return visit.words("payments.by_score", score=decimal(visit, bot["score"], 2))
    return ""


def action_of(payment: JsonObject) -> str | None:
    """Return the recommended action; None without one."""
    bot = (payment.get("analyses") or {}).get("bot_behaviour")
    return bot["action"] if bot else None


def score_of(payment: JsonObject) -> str:
    """Return the score as in files and searches, with a decimal point; empty without one."""
    bot = (payment.get("analyses") or {}).get("bot_behaviour")
    return f"{bot['score']:.2f}" if bot and bot.get("score") is not None else ""


def filter_member(name: str, value: str) -> str:
    """Return a member of a search for payments; the value may have any characters."""
    quoted = _SPECIAL.sub(r"\\\g<0>", value)
    return f'{name}:"{quoted}"'


def payments_link(visit: Visit, text: str, query: str | None, **shared: str) -> Html:
    """Link to the payments that a search finds, for those who may search; with `of` and `by`, to
    those of them that share a value with the payment `of`.
    """
    if not visit.may("personal:read"):
        return element("span", text)
    return element("a", text, href=target("/console/payments", **shared, q=query))


def control_if_allowed(visit: Visit, scope: str, control: Html) -> Html:
    """Return the control if the person has the scope, else nothing."""
    return control if visit.may(scope) else Html("")


def payment_address(id_: str) -> str:
    return f"/console/payments/{segment(id_)}"


def proposed_address(*numbers: int) -> str:
    """Return the address of the open proposals, with a message about those just made."""
    return target("/console/changes", proposed=",".join(map(str, numbers)))


def aged_instant(visit: Visit, text: str) -> Html:
    """A moment, with how long ago it was."""
    return join_html(instant(visit, text), " ", element("small", since_text(visit, text)))


def payment_row(
    visit: Visit,
    payment: JsonObject,
    show_time: ShowTime = instant,
    /,
    **attributes: str | None,
) -> Html:
    """A table row for a payment, with personal data masked."""
    user = payment["user"] or {}
    who = mask_email(user.get("email")) or mask_id(user.get("id"))
    cells = (
        element("a", show_time(visit, payment["at"]), href=payment_address(payment["id"])),
        action_badge(visit, action_of(payment)),
        reason(visit, payment),
        element("span", money(visit, payment["amount"], payment["currency"]), class_="number"),
        element("span", localize(visit, score_of(payment)) or "–", class_="number"),
        mask_card(payment["card"]),
        who,
        visit.words(f"status.{payment['status']}"),
        label_badge(visit, payment["label"]),
    )
    # On phones a row is displayed as a card, so its role must be declared.
    shown = (element("td", cell, role="cell") for cell in cells)
    return element("tr", *shown, data_id=payment["id"], role="row", **attributes)


async def in_turn(
    visit: Visit, make: Callable[Concatenate[Visit, _P], _Made], *given: _P.args, **named: _P.kwargs
) -> _Made:
    """Make a part of a page in its turn: no payment waits for a whole page."""
    await visit.client.turns.wait()
    return make(visit, *given, **named)


async def payment_table(
    visit: Visit,
    payments: Sequence[JsonObject],
    show_time: ShowTime = instant,
    /,
    **attributes: str,
) -> Html:
    titles = ("time", "action", "why", "amount", "score", "card", "who", "status", "label")
    return _whole_table(
        [visit.words(f"payments.{title}") for title in titles],
        [await in_turn(visit, payment_row, payment, show_time) for payment in payments],
        visit.words("payments.caption"),
        numeric=(3, 4),
        class_="payments rows",
        role="table",
        **attributes,
    )


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a table's row; those at the places `numeric` hold figures."""

    cells: tuple[str, ...]
    numeric: Sequence[int]


def row(*cells: str, numeric: Sequence[int] = ()) -> Row:
    return Row(cells, numeric)


def table(
    titles: Sequence[str],
    rows: Iterable[Row],
    caption: str,
    numeric: Sequence[int] = (),
    **attributes: str,
) -> Html:
    """A table of a few columns, which fit on every screen; `caption` is for screen readers."""
    shown = (
        element(
            "tr",
            *(element("td", cell, class_=_kind(each, at)) for at, cell in enumerate(each.cells)),
        )
        for each in rows
    )
    return _whole_table(titles, shown, caption, numeric, **attributes)


def card_table(
    titles: Sequence[str],
    rows: Iterable[Row],
    caption: str,
    numeric: Sequence[int] = (),
    class_: str = "",
) -> Html:
    """A table of many columns: on a narrow screen each row is a card, headed by its first cell, with
    the title of its column above every other.
    """
    shown = (
        element(
            "tr",
            *(
                element(
                    "td",
                    cell,
                    class_=_kind(each, at),
                    role="cell",
                    data_title=titles[at] if at else None,
                )
                for at, cell in enumerate(each.cells)
            ),
            role="row",
        )
        for each in rows
    )
    return _whole_table(
        titles, shown, caption, numeric, class_=f"cards {class_}".strip(), role="table"
    )


def _kind(row: Row, place: int) -> str | None:
    return "number" if place in row.numeric else None


def _whole_table(
    titles: Sequence[str],
    rows: Iterable[Html],
    caption: str,
    numeric: Sequence[int] = (),
    **attributes: str,
) -> Html:
    """A table that scrolls sideways by itself where it does not fit."""
    head = element(
        "tr",
        *(
            element("th", title, scope="col", class_="number" if place in numeric else None)
            for place, title in enumerate(titles)
        ),
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="unseen"),
            element("thead", head),
            element("tbody", *rows),
            **attributes,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def chart(
    title: str,
    names: Sequence[str],
    moments: Sequence[float],
    series: Sequence[Sequence[float]],
    shown: Html,
    table_title: str,
    **attributes: str,
) -> Html:
    """A chart drawn by a script, with its figures as a table."""
    data = json.dumps([list(moments), *map(list, series)], separators=(",", ":"))
    return element(
        "figure",
        element("figcaption", title),
        element(
            "div",
            data_chart=data,
            data_names=json.dumps(list(names)),
            class_="chart",
            role="img",
            aria_label=title,
            **attributes,
        ),
        element("details", element("summary", table_title), shown),
    )


def confirmed(said: str, warning: str, control: Html) -> Html:
    """A control for something irreversible, behind a description of its effect."""
    summary = element("summary", said)
    return element(
        "details", summary, element("p", warning, class_="hints"), control, class_="inline"
    )


def bar(share: float, kind: str) -> Html:
    """A share from 0 to 1 as a bar, with its number beside it."""
    width = max(0, min(100, round(share * 100)))
    return element("meter", value=str(width), min="0", max="100", class_=kind, aria_hidden="true")


def notice(kind: str, *content: str) -> Html:
    return element("div", *content, class_=f"notice {kind}", role="status")


def with_code(text: str) -> Html:
    """Format a text of the interface, in which backticks enclose code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is literal
        return element("span", text)
    return join_html(*(element("code", part) if at % 2 else part for at, part in enumerate(parts)))


def refuse_unseen(said: str, fields: Iterable[str]) -> None:
    """Raise `RefusalError` where a form would undo what others did in these fields since its page was
    made.
    """
    if errors := [{"field": field, "message": said} for field in fields]:
        raise RefusalError(HTTPStatus.CONFLICT, errors)


def errors_notice(errors: Iterable[JsonObject]) -> Html:
    """List the interface's errors, each with its field."""
    lines = [
        element("li", element("code", str(error["field"])), ": ", with_code(str(error["message"])))
        for error in errors
    ]
    return element("div", element("ul", *lines), class_="notice error", role="alert")


def finding(diagnostic: JsonObject) -> Html:
    """An item of a list: what was found in a rule's text, and where."""
    start, help_ = diagnostic["span"], diagnostic.get("help")
    return element(
        "li",
        element("span", f"{start['line']}:{start['column']}", class_="place"),
        " ",
        with_code(diagnostic["message"]),
        element("small", " ", with_code(help_)) if help_ else Html(""),
        class_=diagnostic["severity"],
    )


def next_page(here: Visit, cursor: str | None, text: str) -> Html:
    """Link to the page after `cursor`; nothing on the last page."""
    if cursor is None:
        return Html("")
    return element("a", text, href=here.address(cursor=cursor), class_="button")


def field(label: str, control: Html) -> Html:
    return element("label", element("span", label), control)


def choices(
    name: str, options: Iterable[tuple[str, str]], chosen: str | None = None, **more: str
) -> Html:
    return element(
        "select",
        *(
            element("option", text, value=value, selected="" if value == chosen else None)
            for value, text in options
        ),
        name=name,
        **more,
    )


def text_of(moment: datetime) -> str:
    """Format a moment for the interface."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
