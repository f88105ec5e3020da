"""Lists: what stands in them, added and removed with a note and an end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import csv_file, go_to, html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import (
    choices,
    control_if_allowed,
    field,
    next_page,
    notice,
    row,
    table,
    text_of,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_TITLES = ("expires_at", "note", "by")
_PAGES_IN_FILE = 100
_ENTRY_TYPES = ("string", "integer", "decimal", "ip", "network")


@get("/console/lists")
async def lists(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = (await here.client.get("/v1/lists"))["lists"]
    rows = [
        row(element("a", each["name"], href=list_address(each["name"])), _kind(here, each))
        for each in found
    ]
    content = join_html(
        element("h1", words("frame.lists")),
        table([words("lists.name"), words("lists.type")], rows, words("frame.lists"), class_="rows")
        if rows
        else element("p", words("lists.none"), class_="empty"),
        control_if_allowed(here, "lists:write", _new_list(here)),
    )
    return html(page(here, words("frame.lists"), content))


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
    words = here.words
    path = f"/v1/lists/{segment(name)}"
    spec = (await here.client.get(path))["list"]
    found = await here.client.get(
        f"{path}/entries", {"cursor": here.query.get("cursor"), "limit": "100"}
    )
    rows = [_entry(here, name, each) for each in found["entries"]]
    titles = ("value", "expires", "note", "by", "act")
    content = join_html(
        element(
            "header",
            element("h1", name, " ", element("small", _kind(here, spec))),
            element("a", words("payments.csv"), href=f"{list_address(name)}/export.csv"),
            class_="tools",
        ),
        _done(here),
        control_if_allowed(here, "lists:write", _add(here, name)) if "type" in spec else Html(""),
        table([words(f"lists.{title}") for title in titles], rows, name, class_="rows")
        if rows
        else element("p", words("lists.empty"), class_="empty"),
        next_page(here, found["cursor"], words("lists.more")),
    )
    return html(page(here, name, content))


@get("/console/lists/{name:str}/export.csv")
async def export_list(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """What stands in the list, up to so many entries that a browser waits for."""
    here = await visit(request)
    path = f"/v1/lists/{segment(name)}"
    columns = list((await here.client.get(path))["list"].get("columns") or ())
    rows: list[tuple[str, ...]] = []
    cursor: str | None = None
    for _ in range(_PAGES_IN_FILE):
        found = await here.client.get(f"{path}/entries", {"cursor": cursor, "limit": "500"})
        for each in found["entries"]:
            held = each.get("columns") or {}
            values = [held.get(column) or "" for column in columns]
            said = [each.get(title) or "" for title in _TITLES]
            rows.append((each["value"], *values, *said))
        cursor = found["cursor"]
        if cursor is None:
            break
    return csv_file(name, ("value", *columns, *_TITLES), rows)


@post("/console/lists/{name:str}/entries")
async def change_entries(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Add the values, one a line, or remove one."""
    here = await visit(request)
    sent = await read_form(request)
    path = f"/v1/lists/{segment(name)}/entries"
    if removed := sent.get("remove"):
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
    await here.client.send("PUT", path, body={"entries": entries})
    return go_to(target(list_address(name), added=str(len(entries))))


def list_address(name: str) -> str:
    return f"/console/lists/{segment(name)}"


def _as_utc(here: Visit, local: str) -> str:
    """What a browser's date field says, in the account's zone."""
    return text_of(datetime.fromisoformat(local).replace(tzinfo=here.zone)) if local else ""


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
        field(words("lists.values"), element("textarea", name="values", rows="2", required="")),
        field(words("lists.note"), element("input", name="note", maxlength="200")),
        field(words("lists.expires"), element("input", type="datetime-local", name="expires_at")),
        element("button", words("lists.add")),
        method="post",
        action=f"{list_address(name)}/entries",
        class_="line",
    )


def _entry(here: Visit, name: str, entry: JsonObject) -> Html:
    remove = element(
        "form",
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
        entry.get("expires_at") or "–",
        entry.get("note") or "",
        entry.get("by") or "",
        control_if_allowed(here, "lists:write", remove),
    )
