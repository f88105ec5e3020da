"""Lists: their entries, added and removed with a note and an expiry."""

from __future__ import annotations

import asyncio
import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from io import StringIO
from typing import Any, NamedTuple

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response, Stream

from tollkeeper.api.console.answers import csv_file, go_to, html
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.list_form import reason_field
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    Row,
    card_table,
    choices,
    control_if_allowed,
    field,
    filter_member,
    instant,
    next_page,
    notice,
    number,
    payments_link,
    proposed_address,
    read_instant,
    row,
    separated,
    table,
    text_of,
)
from tollkeeper.api.console.rule_lists import kind_of_list, read_live_rules, rules_with_list
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

ENTRY_TITLES = ("expires_at", "note")
_AT_ONCE = 40
"""The most values in one search, which takes 50 members."""
_WEIGHED = 400
"""The most new values of a file for which payments are searched."""
_HIT_SPAN = timedelta(days=30)
"""The span over which an entry's payments are counted."""
_HITS = {"met": "", "deny": " action:deny", "passed": " status:succeeded label:none"}
_ENTRY_TYPES = ("string", "integer", "decimal", "ip", "network")


@get("/console/lists")
async def lists(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = (await here.client.get("/v1/lists"))["lists"]
    rules = await read_live_rules(here) if here.may("rules:read") else None
    rows = [
        row(
            element("a", each["name"], href=list_address(each["name"])),
            _kind(here, each),
            *([] if rules is None else [_asked_by(here, rules, each["name"])]),
        )
        for each in found
    ]
    titles = ("name", "type", *(() if rules is None else ("rules",)))
    content = join_html(
        element("h1", words("frame.lists")),
        table(
            [words(f"lists.{title}") for title in titles],
            rows,
            words("frame.lists"),
            class_="rows",
        )
        if rows
        else element("p", words("lists.none"), class_="empty"),
        control_if_allowed(here, "lists:write", _new_list(here)),
    )
    return html(page(here, words("frame.lists"), content))


def _asked_by(here: Visit, rules: Mapping[str, str], name: str) -> Html:
    """Link to the live rules that look values up in the list."""
    links = [
        element("a", rule, href=f"/console/rules/{segment(rule)}")
        for rule in rules_with_list(rules, name)
    ]
    return separated(", ", links) if links else element("small", here.words("lists.no_rule"))


def _new_list(here: Visit) -> Html:
    words = here.words
    return join_html(
        element("h2", words("lists.make")),
        element(
            "form",
            field(
                words("lists.name"),
                element("input", name="name", required="", pattern="[a-z][a-z0-9_]*"),
            ),
            field(words("lists.type"), choices("type", [(each, each) for each in _ENTRY_TYPES])),
            element("button", words("lists.make")),
            method="post",
            action="/console/lists",
            data_kept="",
            class_="line",
        ),
    )


@post("/console/lists")
async def make_list(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    sent = await read_form(request)
    name = sent["name"]
    await here.client.send("PUT", f"/v1/lists/{segment(name)}", body={"type": sent["type"]})
    return go_to(list_address(name))


@get("/console/lists/{name:str}")
async def one_list(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    here = await visit(request)
    return await _list_page(here, name, _done(here))


@post("/console/lists/{name:str}/find")
async def find_entry(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Find the entries that hold a value; the value isn't put into an address."""
    here = await visit(request)
    return await _list_page(here, name, Html(""), (await read_form(request))["value"].strip())


async def entries_holding(here: Visit, name: str, value: str) -> JsonObject:
    """Return a page of the entries that match a value, including networks and prefixes."""
    path = f"/v1/lists/{segment(name)}/entries"
    found: JsonObject = await here.client.aside(path, {"value": value, "limit": "100"})
    return found


class Held(NamedTuple):
    """A list in which a value is in force, and until when; None for good."""

    list: str
    until: datetime | None


async def find_held(here: Visit, lists: Iterable[str], value: str) -> Held | None:
    """Return the first of the lists in which the value is in force, as an expired entry stops nobody;
    None for those who may not read lists.
    """
    if not here.may("lists:read"):
        return None
    for name in lists:
        for entry in (await entries_holding(here, name, value))["entries"]:
            end = entry.get("expires_at")
            until = None if end is None else read_instant(end)
            if until is None or here.now < until:
                return Held(name, until)
    return None


async def _list_page(here: Visit, name: str, said: Html, value: str | None = None) -> Response[str]:
    """Show the list, or only the entries that match the value."""
    words = here.words
    path = f"/v1/lists/{segment(name)}"
    spec = (await here.client.get(path))["list"]
    if value is None:
        query = {"cursor": here.query.get("cursor"), "limit": "100"}
        found = await here.client.get(f"{path}/entries", query)
    else:
        found = await entries_holding(here, name, value)
    hits = await _entry_hits(here, name, found["entries"]) if "hits" in here.query else {}
    rows = [_entry(here, name, each, hits) for each in found["entries"]]
    titles = ("value", *(["met"] if hits else []), "expires", "note", "by", "act")
    counting = element("a", words("lists.count"), href=target(list_address(name), hits="1"))
    content = join_html(
        element(
            "header",
            element("h1", name, " ", element("small", _kind(here, spec))),
            element("a", words("payments.csv"), href=f"{list_address(name)}/export.csv"),
            class_="tools",
        ),
        said,
        _find_form(here, name, value) if rows or value is not None else Html(""),
        approval_note(here),
        control_if_allowed(here, "lists:write", _add(here, name)) if "type" in spec else Html(""),
        control_if_allowed(here, "lists:write", _import_form(here, name)),
        card_table(
            [words(f"lists.{title}") for title in titles],
            rows,
            name,
            numeric=(1,) if hits else (),
            class_="rows",
        )
        if rows
        else element(
            "p", words("lists.empty" if value is None else "lists.not_found"), class_="empty"
        ),
        element("p", counting)
        if rows and not hits and here.may("rules:read") and here.may("personal:read")
        else Html(""),
        next_page(here, found["cursor"] if value is None else None, words("lists.more")),
    )
    return html(page(here, name, content))


@get("/console/lists/{name:str}/export.csv")
async def export_list(request: Request[Any, Any, Any], name: FromPath[str]) -> Stream:
    here = await visit(request)
    path = f"/v1/lists/{segment(name)}"
    columns = list((await here.client.get(path))["list"].get("columns") or ())
    rows = (
        [entry_row(columns, each) for each in found["entries"]]
        async for found in here.client.read_pages(f"{path}/entries", {"limit": "500"})
    )
    return await csv_file(name, ("value", *columns, *ENTRY_TITLES), rows)


def entry_row(columns: Sequence[str], entry: JsonObject) -> tuple[str, ...]:
    """Return an entry as a line of a file: its value, its `columns` and `ENTRY_TITLES`."""
    held = entry.get("columns") or {}
    values = [held.get(column) or "" for column in columns]
    return entry["value"], *values, *(entry.get(title) or "" for title in ENTRY_TITLES)


@post("/console/lists/{name:str}/entries")
async def change_entries(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Add values, one a line, or remove one."""
    here = await visit(request)
    sent = await read_form(request)
    path = f"/v1/lists/{segment(name)}/entries"
    if removed := sent.get("remove"):
        if here.list_approval:
            given = [{"value": removed}]
            return await _propose(here, name, given, sent.get("note"), "remove")
        await here.client.send("DELETE", path, body={"entries": [{"value": removed}]})
        return go_to(target(list_address(name), removed="1"))
    more = {
        key: value
        for key, value in (
            ("note", sent.get("note")),
            ("expires_at", _as_utc(here, sent.get("expires_at"))),
        )
        if value
    }
    values = [line.strip() for line in sent.get("values").splitlines() if line.strip()]
    entries = [{"value": value, **more} for value in values]
    if here.list_approval:
        return await _propose(here, name, entries, sent.get("note"))
    await here.client.send("PUT", path, body={"entries": entries})
    return go_to(target(list_address(name), added=str(len(entries))))


async def _propose(
    here: Visit, name: str, entries: Sequence[JsonObject], note: str, action: str = "put"
) -> Response[str]:
    """Propose the entries to another person, and redirect to the proposal."""
    number_ = await send_entries(here, name, entries, note, action)
    return go_to(proposed_address(number_))


async def send_entries(
    here: Visit, name: str, entries: Sequence[JsonObject], note: str, action: str = "put"
) -> int:
    """Propose the entries; return the proposal's number."""
    wanted = {"name": name, "action": action, "entries": entries}
    body: JsonObject = {"proposal": {"note": note, "entries": wanted}}
    sent = await here.client.send("POST", "/v1/proposals", body=body)
    made: int = sent["proposal"]["number"]
    return made


def approval_note(here: Visit) -> Html:
    """Say that changes here need another person's approval, if the account requires it."""
    if not here.list_approval:
        return Html("")
    return element("p", here.words("lists.approval"), class_="hints")


@post("/console/lists/{name:str}/preview")
async def preview_file(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Show what importing a file would change, and which payments its new values would have
    matched.
    """
    here = await visit(request)
    text = (await read_form(request))["csv"]
    sent = await here.client.send("POST", f"/v1/lists/{segment(name)}/previews", text=text)
    preview, words = sent["preview"], here.words
    new, present = preview["new"], preview["present"]
    content = join_html(
        element("h1", words("lists.preview", list=name)),
        element(
            "p",
            words(
                "lists.would",
                new=number(here, len(new)),
                present=number(here, len(present)),
                malformed=number(here, preview["malformed_count"]),
            ),
        ),
        _malformed(here, preview["malformed"]),
        await hits_of_values(here, name, new) if here.may("rules:read") else Html(""),
        _apply(here, name, text) if not preview["malformed"] and (new or present) else Html(""),
        element("p", element("a", words("lists.back"), href=list_address(name))),
    )
    return html(page(here, name, content))


@post("/console/lists/{name:str}/import")
async def import_file(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    here = await visit(request)
    sent = await read_form(request)
    text = sent["csv"]
    if here.list_approval:
        return await _propose(here, name, _entries_of(text), sent.get("note"))
    put = await here.client.send("POST", f"/v1/lists/{segment(name)}/imports", text=text)
    return go_to(target(list_address(name), added=str(put["list"]["put"])))


def _entries_of(text: str) -> list[JsonObject]:
    """Return the entries of a file that a preview accepted."""
    entries = []
    for line in csv.DictReader(StringIO(text)):
        entry: JsonObject = {key: line[key] for key in ("value", *ENTRY_TITLES) if line.get(key)}
        columns = {key: cell for key, cell in line.items() if key not in ("value", *ENTRY_TITLES)}
        entries.append({**entry, "columns": columns} if columns else entry)
    return entries


def _malformed(here: Visit, lines: list[JsonObject]) -> Html:
    if not lines:
        return Html("")
    items = [element("li", element("code", each["place"]), " ", each["message"]) for each in lines]
    return element(
        "div",
        element("p", here.words("lists.malformed")),
        element("ul", *items),
        class_="notice error",
        role="alert",
    )


async def hits_of_values(here: Visit, name: str, values: Sequence[str]) -> Html:
    """Show how many payments of the last week had one of the first values, by the fields that
    active rules look up.
    """
    by = kind_of_list(await read_live_rules(here), name) if values else None
    if by is None:
        return Html("")
    counts = dict.fromkeys(_HITS, 0)
    for start in range(0, min(len(values), _WEIGHED), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        own = " ".join(filter_member(by, value) for value in some)
        for which, more in _HITS.items():
            query = {"q": f"{own} since:7d{more}"}
            counts[which] += (await here.client.aside("/v1/payments/count", query))["count"]
    return element(
        "p",
        element(
            "strong",
            here.words(
                "lists.hits",
                count=number(here, counts["met"]),
                denied=number(here, counts["deny"]),
                passed=number(here, counts["passed"]),
                by=here.words(f"by.{by}"),
                values=number(here, min(len(values), _WEIGHED)),
            ),
        ),
    )


async def _entry_hits(here: Visit, name: str, entries: Sequence[JsonObject]) -> dict[str, Html]:
    """Return how many payments of 30 days each entry matched, by the field that active rules look
    up; empty if no rule does so by a field that payments can be searched by.
    """
    by = kind_of_list(await read_live_rules(here), name)
    if by is None:
        return {}
    found = await asyncio.gather(*(_entry_hit(here, by, each["value"]) for each in entries))
    return {each["value"]: shown for each, shown in zip(entries, found, strict=True)}


async def _entry_hit(here: Visit, by: str, value: str) -> Html:
    """Show the count, linked by one of the payments so that no address contains a personal value; a
    dash for what can't be searched, such as a wide network.
    """
    own = filter_member(by, value)
    span = f"since:{text_of(here.now - _HIT_SPAN)} until:{text_of(here.now)}"
    wanted = {"q": f"{own} {span}"}
    try:
        count = (await here.client.aside("/v1/payments/count", wanted))["count"]
    except RefusalError:
        return element("span", "–")
    if count:
        newest = await here.client.aside("/v1/payments", {**wanted, "limit": "1"})
        like = newest["payments"][0]["id"]
        return payments_link(here, number(here, count), span, of=like, by=by)
    ever = await here.client.aside("/v1/payments/count", {"q": f"{own} since:90d"})
    return element("span", here.words("lists.never") if not ever["count"] else number(here, 0))


def _apply(here: Visit, name: str, text: str) -> Html:
    return element(
        "form",
        element("textarea", text, name="csv", hidden=""),
        _reason(here),
        element("button", here.words("lists.apply")),
        method="post",
        action=f"{list_address(name)}/import",
    )


def _find_form(here: Visit, name: str, value: str | None) -> Html:
    every = element("a", here.words("changes.every"), href=list_address(name))
    return element(
        "form",
        field(
            here.words("lists.look_up"),
            element(
                "input",
                name="value",
                value=value,
                required="",
                autocomplete="off",
                id="search",
            ),
        ),
        element("button", here.words("lists.find"), class_="quiet"),
        Html("") if value is None else every,
        method="post",
        action=f"{list_address(name)}/find",
        class_="line",
    )


def _import_form(here: Visit, name: str) -> Html:
    words = here.words
    return element(
        "details",
        element("summary", words("lists.import")),
        element(
            "form",
            field(
                words("lists.csv"),
                element(
                    "textarea",
                    name="csv",
                    rows="6",
                    required="",
                    spellcheck="false",
                    placeholder="value,expires_at,note",
                ),
            ),
            element("button", words("lists.see"), class_="quiet"),
            method="post",
            action=f"{list_address(name)}/preview",
            class_="stack",
        ),
    )


def list_address(name: str) -> str:
    return f"/console/lists/{segment(name)}"


def _as_utc(here: Visit, local: str) -> str:
    """Convert a browser's date field, in the account's zone, to UTC; any other text is passed on, and the
    interface refuses it.
    """
    try:
        return text_of(datetime.fromisoformat(local).replace(tzinfo=here.zone))
    except (ValueError, OverflowError):
        return local


def _kind(here: Visit, spec: JsonObject) -> str:
    return str(spec["type"]) if "type" in spec else here.words("lists.table")


def _done(here: Visit) -> Html:
    if "added" in here.query:
        return notice("good", here.words("lists.added", count=here.query["added"]))
    return notice("good", here.words("lists.removed")) if "removed" in here.query else Html("")


def _add(here: Visit, name: str) -> Html:
    words = here.words
    return element(
        "form",
        field(words("lists.values"), element("textarea", name="values", rows="1", required="")),
        reason_field(here, words("lists.note"), "note"),
        field(
            f"{words('lists.expires')} ({here.zone.key})",
            element("input", type="datetime-local", name="expires_at"),
        ),
        element("button", words("lists.add")),
        method="post",
        action=f"{list_address(name)}/entries",
        data_kept="",
        class_="line",
    )


def _reason(here: Visit) -> Html:
    """A field for the reason, if another person must approve."""
    if not here.list_approval:
        return Html("")
    said = here.words("changes.note")
    return element("input", name="note", required="", maxlength="200", aria_label=said)


def _entry(here: Visit, name: str, entry: JsonObject, hits: Mapping[str, Html]) -> Row:
    remove = element(
        "form",
        _reason(here),
        element(
            "button",
            here.words("lists.remove"),
            name="remove",
            value=entry["value"],
            class_="quiet",
            aria_label=f"{here.words('lists.remove')} {entry['value']}",
        ),
        method="post",
        action=f"{list_address(name)}/entries",
        class_="inline",
    )
    columns = "".join(f" · {key} {value}" for key, value in (entry.get("columns") or {}).items())
    return row(
        join_html(element("code", entry["value"]), columns),
        *([hits[entry["value"]]] if hits else []),
        instant(here, end, "%d %b %Y %H:%M") if (end := entry.get("expires_at")) else "–",
        entry.get("note") or "",
        entry.get("by") or "",
        control_if_allowed(here, "lists:write", remove),
        numeric=(1,) if hits else (),
    )
