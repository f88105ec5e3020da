"""Search payments, follow them live, and list those that share a value with one."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from hashlib import blake2b
from http import HTTPStatus
from ipaddress import ip_address
from secrets import token_bytes
from typing import Any

import msgspec
from litestar import Request, get, post
from litestar.response import Response, Stream

from tollkeeper.api.console.answers import PAGE_HEADERS, csv_file, go_to, html
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.list_form import list_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.payment import SHARED_FIELDS, SOURCE
from tollkeeper.api.console.parts import (
    action_of,
    control_if_allowed,
    errors_notice,
    field,
    filter_member,
    in_turn,
    mask_entity,
    next_page,
    notice,
    number,
    payment_row,
    payment_table,
    percent,
    reason,
    refuse_unseen,
    score_of,
    since_text,
    text_of,
    with_code,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_PAGE = "50"
EXPORT_PAGE = "500"
EXPORT_TITLES = ("id", "at", "action", "why", "amount", "currency", "score", "status", "label")
_LIVE_ROWS = "20"
"""The most rows added at once: nobody reads more, and making them competes with deciding payments.
"""
LABELLED_AT_ONCE = 1000
"""The most payments that are labelled together."""
_ALIKE_KEY = token_bytes(16)
_VERDICTS = ("fraud", "legitimate")
EXAMPLE_SEARCHES = (
    "action:deny since:1h",
    "bin:41111111",
    "status:succeeded label:none",
    "score:0.5..0.85",
)
SEARCH_MEMBERS = (
    "since:1h",
    "until:30m",
    "action:deny",
    "rule:web_checkout",
    "version:3",
    "condition:none",
    "score:0.5..0.85",
    "holdout:true",
    "status:declined",
    "label:none",
    "labelled:chargeback:fraud",
    "merchant:m-1",
    "currency:BRL",
    "card:55550000-0001",
    "bin:41111111",
    "device:d-1",
    "user:u-1",
    "email:eva@shop.example",
    "order:o-1",
    "ip:203.0.113.0/24",
    "id:order-10*",
)
"""A member of a search for each name that there is."""
_VALUE = re.compile(r'[^\s:"\\]+')
_BIN = re.compile(r"\d{6}(\d\d)?")


@get("/console/payments")
async def payments(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    shared = await _read_common_values(here)
    query = here.query.get("q", "")
    common = None if shared is None else filter_member(shared["by"], shared["value"])
    wanted = {"q": _both(query, common)}
    # A recorded call would show the shared value.
    ask = here.client.get if shared is None else here.client.aside
    saved = [] if here.merchants else (await here.client.get("/v1/searches"))["searches"]
    try:
        found = await ask(
            "/v1/payments", {**wanted, "limit": _PAGE, "cursor": here.query.get("cursor")}
        )
        count = (await ask("/v1/payments/count", wanted))["count"]
    except RefusalError as refusal:
        if refusal.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        content = join_html(
            element("h1", words("frame.payments")),
            _search(here, query, saved),
            _offer_kinds(here, query) or errors_notice(refusal.errors),
        )
        return html(page(here, words("frame.payments"), content), refusal.status)
    rows = found["payments"]
    content = join_html(
        element("h1", words("frame.payments")),
        _done(here),
        _search(here, query, saved),
        Html("") if shared is None else await _entity(here, shared),
        element(
            "div",
            _tools(here, count),
            _saving(here, query, saved),
            _judging(here, query, count),
            class_="tools",
        ),
        await payment_table(here, rows, **_live(here, query, found["place"])),
        Html("") if rows else element("p", with_code(words("payments.none")), class_="empty"),
        next_page(here, found["cursor"], words("payments.older")),
    )
    return html(page(here, words("frame.payments"), content, scripts=("live.js",)))


@post("/console/payments/labels")
async def judge_found(request: Request[Any, Any, Any]) -> Response[str]:
    """Label all payments that a search found, as they were shown on its page; later ones are left
    out.
    """
    here = await visit(request)
    sent = await read_form(request)
    query = {"q": sent["q"], "limit": EXPORT_PAGE}
    found: list[JsonObject] = []
    cursor: str | None = None
    while len(found) <= LABELLED_AT_ONCE:
        answer = await here.client.get("/v1/payments", {**query, "cursor": cursor})
        found += [each for each in answer["payments"] if each["at"] <= sent["at"]]
        cursor = answer["cursor"]
        if cursor is None:
            break
    verdict = {"source": SOURCE, "label": sent["label"], "reason": sent.get("note") or None}
    labels = [{"payment": each["id"], **verdict} for each in found]
    kept = 0
    if labels:
        answer = await here.client.send("POST", "/v1/labels", body={"labels": labels})
        kept = sum(each["status"] == HTTPStatus.OK for each in answer["labels"])
    return go_to(target("/console/payments", q=sent["q"], labelled=str(kept)))


@get("/console/payments/export.csv")
async def export(request: Request[Any, Any, Any]) -> Stream:
    """Export the search's payments as a file, without personal data."""
    here = await visit(request)
    query = {"q": here.query.get("q", ""), "limit": EXPORT_PAGE}
    rows = (
        [_export_row(here, each) for each in found["payments"]]
        async for found in here.client.read_pages("/v1/payments", query)
    )
    return await csv_file("payments", EXPORT_TITLES, rows)


@get("/console/payments/live")
async def live(request: Request[Any, Any, Any]) -> Stream:
    """Stream new payments as rows, at most twice a second; of many, the newest, and the number of
    the others.
    """
    here = await visit(request)
    # The first time it goes on from what the page shows, then from what came last.
    last = request.headers.get("last-event-id") or here.query.get("after")
    query = {"q": here.query.get("q", ""), "most": _LIVE_ROWS}
    events = _rows(here, here.client.follow("/v1/decisions/stream", query, last))
    # What is refused is said by the answer's status, so it must be known before the answer begins.
    first = await anext(events)
    return Stream(_resume(first, events), media_type="text/event-stream", headers=PAGE_HEADERS)


async def _resume(first: str, rest: AsyncGenerator[str, None]) -> AsyncIterator[str]:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event


async def _rows(here: Visit, stream: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    held = b""
    async for chunk in stream:
        held += chunk
        *events, held = held.split(b"\n\n")
        # Sent together, as they came: to send each row by itself takes longer than to make it.
        rows = [await in_turn(here, _as_row, event.decode()) for event in events]
        if rows:
            yield "".join(f"{row}\n\n" for row in rows)


def _as_row(here: Visit, event: str) -> str:
    """Replace the data of a payment's event by its row; other events are unchanged."""
    lines = event.split("\n")
    if "event: payment" not in lines:
        return event
    kept = [line for line in lines if not line.startswith("data: ")]
    data = next(line for line in lines if line.startswith("data: ")).removeprefix("data: ")
    payment = msgspec.json.decode(data)
    shown = payment_row(here, payment, data_alike=_alike(here, payment))
    return "\n".join([*kept, *(f"data: {line}" for line in shown.split("\n"))])


def _alike(here: Visit, payment: JsonObject) -> str | None:
    """The same of payments that were decided alike, for one reason, of one device or address; it
    names neither. None without either.
    """
    origin = payment["device"] or payment["ip"]
    if origin is None:
        return None
    told = "\n".join((action_of(payment) or "", reason(here, payment), origin))
    return blake2b(told.encode(), key=_ALIKE_KEY, digest_size=8).hexdigest()


async def _read_common_values(here: Visit) -> JsonObject | None:
    """Return what the payments share with the payment `of`, so that no address contains the value
    itself.
    """
    of, by = here.query.get("of"), here.query.get("by")
    if of is None or by is None:
        return None
    related = (await here.client.get(f"/v1/payments/{segment(of)}/related"))["related"]
    named = "ip" if by == "network" else by
    found = [{**each, "by": named} for each in related if each["by"] == by]
    return found[0] if found else None


@post("/console/searches")
async def save_search(request: Request[Any, Any, Any]) -> Response[str]:
    """Save the search under a name, or delete a saved one."""
    here = await visit(request)
    sent = await read_form(request)
    path = f"/v1/searches/{segment(sent['name'].strip())}"
    if sent.get("drop"):
        await here.client.send("DELETE", path)
    else:
        saved = (await here.client.get("/v1/searches"))["searches"]
        others = {each["name"] for each in saved if each["query"] != sent["q"]}
        taken = ("search.name",) if sent["name"].strip() in others else ()
        refuse_unseen(here.words("payments.name_taken"), taken)
        await here.client.send("PUT", path, body={"search": {"query": sent["q"]}})
    return go_to(target("/console/payments", q=sent.get("q")))


def _done(here: Visit) -> Html:
    if listed := here.query.get("listed"):
        return notice("good", here.words("payment.listed", list=listed))
    if labelled := here.query.get("labelled"):
        return notice("good", here.words("payments.labelled", count=labelled))
    return Html("")


def _judging(here: Visit, query: str, count: int) -> Html:
    """A form that labels all payments found, unless there are too many."""
    words = here.words
    if not query or "of" in here.query or not 0 < count <= LABELLED_AT_ONCE:
        return Html("")
    buttons = (
        element(
            "button", words(f"label.{each}"), name="label", value=each, class_=f"verdict {each}"
        )
        for each in _VERDICTS
    )
    form = element(
        "form",
        element("input", type="hidden", name="q", value=query),
        element("input", type="hidden", name="at", value=text_of(here.now)),
        field(words("payment.verdict_note"), element("input", name="note", maxlength="200")),
        *buttons,
        method="post",
        action="/console/payments/labels",
        data_kept="",
        class_="line",
    )
    summary = element("summary", words("payments.judge", count=number(here, count)))
    return control_if_allowed(here, "labels:write", element("details", summary, form))


def _saving(here: Visit, query: str, saved: list[JsonObject]) -> Html:
    """A form that names the search, or deletes it if it is saved."""
    words = here.words
    known = next((each["name"] for each in saved if each["query"] == query), None)
    if not query or here.merchants or not here.may("labels:write"):
        return Html("")
    said = (
        (
            field(
                words("payments.name"),
                element("input", name="name", required="", maxlength="64", autocomplete="off"),
            ),
            element("button", words("payments.save"), class_="quiet"),
        )
        if known is None
        else (
            element("input", type="hidden", name="name", value=known),
            element(
                "button", words("payments.drop", name=known), name="drop", value="1", class_="quiet"
            ),
        )
    )
    form = element(
        "form",
        element("input", type="hidden", name="q", value=query),
        *said,
        method="post",
        action="/console/searches",
        data_kept="",
        class_="line",
    )
    if known is not None:
        return form
    return element("details", element("summary", words("payments.save_search")), form)


def _both(query: str, entity: str | None) -> str:
    return query if entity is None else f"{query} {entity}".strip()


def _offer_kinds(here: Visit, query: str) -> Html:
    """Offer to search for a bare value as what it may be; nothing for any other search."""
    value = query.strip()
    members = [f"{name}:{value}" for name in _kinds_of(value)]
    links = [element("a", member, href=target("/console/payments", q=member)) for member in members]
    return (
        element("p", here.words("payments.find_as"), " ", *links, class_="notice warning hints")
        if links
        else Html("")
    )


def _kinds_of(value: str) -> tuple[str, ...]:
    """Return the names by which a search may find a bare value; none if it isn't one value."""
    with suppress(ValueError):
        ip_address(value)
        return ("ip",)
    if not _VALUE.fullmatch(value):
        return ()
    if "@" in value:
        return ("email", "user")
    return (*(("bin",) if _BIN.fullmatch(value) else ()), "id", "user", "device", "order")


def _search(here: Visit, query: str, saved: list[JsonObject]) -> Html:
    words = here.words
    hidden = [
        element("input", type="hidden", name=name, value=here.query[name])
        for name in ("of", "by")
        if name in here.query
    ]
    examples = [
        element("a", each["name"], href=target("/console/payments", q=each["query"]))
        for each in saved or [{"name": example, "query": example} for example in EXAMPLE_SEARCHES]
    ]
    return element(
        "form",
        *hidden,
        field(
            words("payments.find"),
            element(
                "input",
                type="search",
                name="q",
                value=query,
                autocomplete="off",
                spellcheck="false",
                id="search",
                placeholder="action:deny bin:41111111 since:1h",
            ),
        ),
        element("button", words("payments.go")),
        element(
            "p",
            words("payments.saved" if saved else "payments.examples"),
            " ",
            join_html(*examples),
            class_="hints",
        ),
        element(
            "details",
            element("summary", words("payments.members")),
            element("p", element("code", " ".join(SEARCH_MEMBERS))),
            element("p", with_code(words("payments.members_note"))),
            class_="hints",
        ),
        action="/console/payments",
        role="search",
        class_="search",
    )


def _tools(here: Visit, count: int) -> Html:
    words = here.words
    live_box = element(
        "label",
        element("input", type="checkbox", id="live"),
        " ",
        words("payments.live"),
        class_="with-script",
    )
    csv_link = element(
        "a",
        words("payments.csv"),
        href=target("/console/payments/export.csv", q=here.query.get("q")),
    )
    is_shared = "of" in here.query  # a file's address would hold the shared value
    return join_html(
        element("p", words("payments.count", count=number(here, count)), id="count", role="status"),
        live_box if _is_followed(here) else Html(""),
        Html("") if is_shared else csv_link,
    )


def _is_followed(here: Visit) -> bool:
    """Whether the live feed goes on from this page."""
    return "of" not in here.query and "cursor" not in here.query


def _live(here: Visit, query: str, place: str) -> dict[str, str]:
    """What the live feed goes on from, and its texts; nothing on a page that has none."""
    return (
        {}
        if not _is_followed(here)
        else {
            "data_live": target("/console/payments/live", q=query),
            "data_place": place,
            "data_more": here.words("payments.more"),
            "data_folded": here.words("payments.folded"),
            "data_stopped": here.words("payments.stopped"),
        }
    )


async def _entity(here: Visit, shared: JsonObject) -> Html:
    """Show what is known of the shared value, and a form to add it to a list."""
    words, tally = here.words, shared["tally"]
    values = {shared["by"]: shared["value"]} if here.query["by"] in SHARED_FIELDS else {}
    return element(
        "section",
        element("h2", words(f"by.{shared['by']}"), " ", mask_entity(shared["by"], shared["value"])),
        element(
            "p",
            words(
                "payments.entity",
                first=since_text(here, shared["first"]),
                payments=number(here, tally["payments"]),
                refused=percent(here, tally["actions"]["deny"], tally["payments"]),
                fraud=number(here, tally["labels"]["fraud"]),
            ),
        ),
        await list_form(here, here.query["of"], values, shared="1") if values else Html(""),
        class_="entity",
    )


def _export_row(here: Visit, payment: JsonObject) -> tuple[str, ...]:
    return (
        payment["id"],
        payment["at"],
        action_of(payment) or "",
        reason(here, payment),
        "" if payment["amount"] is None else str(payment["amount"]),
        payment["currency"],
        score_of(payment),
        payment["status"],
        payment["label"] or "",
    )
