"""The account's keys: make one, see its secret once, revoke it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.settings_head import KEYS_PAGE, settings_head
from tollkeeper.api.console.parts import (
    Row,
    card_table,
    choices,
    confirmed,
    control_if_allowed,
    field,
    instant,
    notice,
    row,
    since_text,
    text_of,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

OFFERED_SCOPES = ("payments:write", "events:write", "payments", "rules", "payments:read", "admin")
"""The usual scopes; keys with others are made by command or over HTTP."""
_DAYS = ("30", "90", "365")


@get(KEYS_PAGE)
async def keys(request: Request[Any, Any, Any]) -> Response[str]:
    return await _page(await visit(request))


@post(KEYS_PAGE)
async def make_key(request: Request[Any, Any, Any]) -> Response[str]:
    """Make a key; its secret is shown only on the page that answers."""
    here = await visit(request)
    sent = await read_form(request)
    wanted: dict[str, Any] = {"scopes": [sent["scope"]], "name": sent.get("name")}
    wanted["test"] = sent.get("account") == "test"
    if sent.get("days"):
        wanted["expires_at"] = text_of(here.now + timedelta(days=sent.whole("days")))
    made = (await here.client.send("POST", "/v1/keys", body={"key": wanted}))["key"]
    secret = element("code", made["secret"], id="secret")
    shown = notice("good", here.words("keys_page.secret", id=made["id"]), " ", secret)
    return await _page(here, shown)


@post("/console/settings/keys/{id_:str}/revoke")
async def revoke_key(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    here = await visit(request)
    await here.client.send("DELETE", f"/v1/keys/{segment(id_)}")
    return go_to(target(KEYS_PAGE, revoked=id_))


async def _page(here: Visit, said: Html | None = None) -> Response[str]:
    words = here.words
    found = (await here.client.get("/v1/keys"))["keys"]
    revoked = here.query.get("revoked")
    done = notice("good", words("keys_page.done", id=revoked)) if revoked else Html("")
    titles = ("id", "name", "scopes", "owner", "made", "used", "ends", "act")
    open_ = [each for each in found if each["revoked_at"] is None]
    content = join_html(
        settings_head(here, KEYS_PAGE),
        said or done,
        element("p", words("keys_page.note")),
        card_table(
            [words(f"keys_page.{title}") for title in titles],
            [_row(here, each) for each in reversed(open_)],
            words("keys_page.title"),
        )
        if open_
        else element("p", words("keys_page.none"), class_="empty"),
        control_if_allowed(here, "users:write", _new(here)),
    )
    return html(page(here, words("keys_page.title"), content))


def _row(here: Visit, key: JsonObject) -> Row:
    words, id_ = here.words, key["id"]
    end = key["expires_at"]
    revoke = element(
        "form",
        element(
            "button",
            words("keys_page.revoke"),
            class_="quiet",
            aria_label=f"{words('keys_page.revoke')}: {key['name'] or id_}",
        ),
        method="post",
        action=f"{KEYS_PAGE}/{segment(id_)}/revoke",
        class_="inline",
    )
    return row(
        element("code", f"{id_}…"),
        key["name"],
        ", ".join(key["scopes"]),
        key["owner"] or "",
        join_html(instant(here, key["created_at"], "%d %b %Y"), " ", key["created_by"]),
        since_text(here, key["used_at"]),
        "–" if end is None else instant(here, end, "%d %b %Y"),
        control_if_allowed(
            here,
            "users:write",
            confirmed(words("keys_page.revoke"), words("keys_page.revoke_warning"), revoke),
        ),
    )


def _new(here: Visit) -> Html:
    words = here.words
    spans = [(days, words("keys_page.days", days=days)) for days in _DAYS]
    accounts = [(each, words(f"keys_page.{each}")) for each in ("live", "test")]
    return join_html(
        element("h2", words("keys_page.new")),
        element(
            "form",
            field(
                words("keys_page.name"),
                element("input", name="name", maxlength="64", autocomplete="off"),
            ),
            field(
                words("keys_page.scopes"),
                choices("scope", [(each, words(_said(each))) for each in OFFERED_SCOPES]),
            ),
            field(words("keys_page.account"), choices("account", accounts)),
            field(
                words("keys_page.ends"),
                choices("days", [*spans, ("", words("keys_page.never"))], "365"),
            ),
            element("button", words("keys_page.make")),
            method="post",
            action=KEYS_PAGE,
            class_="line",
        ),
    )


def _said(scope: str) -> str:
    return f"keys_page.may_{scope.replace(':', '_')}"
