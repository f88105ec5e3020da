"""Users and their roles, and one-time links to sign in."""

from __future__ import annotations

from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.form import read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.settings_head import USERS, settings_head
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
)
from tollkeeper.api.console.visit import SIGN_IN, Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

OFFERED_ROLES = ("viewer", "analyst", "lead", "auditor", "admin")


@get(USERS)
async def users(request: Request[Any, Any, Any]) -> Response[str]:
    return await _page(await visit(request))


@post(USERS)
async def change_user(request: Request[Any, Any, Any]) -> Response[str]:
    """Add a user, or change their role."""
    here = await visit(request)
    sent = await read_form(request)
    name = sent["name"].strip()
    user: dict[str, Any] = {"role": sent["role"]}
    # If no merchants are named, they stay as they were.
    if merchants := sent.get("merchants").replace(",", " ").split():
        user["merchants"] = merchants
    await here.client.send("PUT", _path(name), body={"user": user})
    return go_to(target(USERS, set=name))


@post("/console/settings/users/{name:str}/remove")
async def remove_user(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    here = await visit(request)
    await here.client.send("DELETE", _path(name))
    return go_to(target(USERS, removed=name))


@post("/console/settings/users/{name:str}/link")
async def give_link(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Make a link; it is shown only on the page that answers."""
    here = await visit(request)
    link = (await here.client.send("POST", f"{_path(name)}/links"))["link"]
    scheme = request.headers.get("x-forwarded-proto", request.url.scheme)
    address = f"{scheme}://{request.headers.get('host', '')}{SIGN_IN}"
    shown = notice(
        "good",
        here.words("users.link", name=name),
        " ",
        element("code", target(address, code=link["code"]), id="link"),
    )
    here.client.calls.clear()
    return await _page(here, shown)


async def _page(here: Visit, said: Html | None = None) -> Response[str]:
    words = here.words
    found = (await here.client.get("/v1/users"))["users"]
    titles = ("name", "role", "merchants", "since", "by", "act")
    rows = [_row(here, each) for each in found]
    content = join_html(
        settings_head(here, USERS),
        said or _done(here),
        element("p", words("users.note")),
        card_table([words(f"users.{title}") for title in titles], rows, words("users.title"))
        if rows
        else element("p", words("users.none"), class_="empty"),
        control_if_allowed(here, "users:write", _new(here)),
        element("h2", words("users.roles")),
        element("dl", *(_role(here, role) for role in OFFERED_ROLES), class_="roles"),
    )
    return html(page(here, words("users.title"), content))


def _row(here: Visit, user: JsonObject) -> Row:
    words, name = here.words, user["name"]
    address = f"{USERS}/{segment(name)}"
    act = join_html(
        _button(f"{address}/link", words("users.make_link"), name),
        confirmed(
            words("users.remove"),
            words("users.remove_warning"),
            _button(f"{address}/remove", words("users.remove"), name),
        ),
    )
    return row(
        name,
        _role_form(here, user),
        ", ".join(user["merchants"]) or words("users.all"),
        instant(here, user["since"], "%d %b %Y"),
        user["by"],
        control_if_allowed(here, "users:write", act),
    )


def _role_form(here: Visit, user: JsonObject) -> Html:
    words = here.words
    if not here.may("users:write"):
        return element("span", words(f"role.{user['role']}"))
    return element(
        "form",
        element("input", type="hidden", name="name", value=user["name"]),
        choices(
            "role",
            [(role, words(f"role.{role}")) for role in OFFERED_ROLES],
            user["role"],
            aria_label=f"{words('users.role')} {user['name']}",
        ),
        element("button", words("users.change"), class_="quiet"),
        method="post",
        action=USERS,
        class_="inline",
    )


def _button(action: str, text: str, name: str) -> Html:
    return element(
        "form",
        element("button", text, class_="quiet", aria_label=f"{text}: {name}"),
        method="post",
        action=action,
        class_="inline",
    )


def _new(here: Visit) -> Html:
    words = here.words
    return join_html(
        element("h2", words("users.new")),
        element(
            "form",
            field(
                words("users.name"),
                element("input", name="name", required="", maxlength="128", autocomplete="off"),
            ),
            field(
                words("users.role"),
                choices(
                    "role", [(role, words(f"role.{role}")) for role in OFFERED_ROLES], "analyst"
                ),
            ),
            field(
                words("users.merchants"),
                element(
                    "input", name="merchants", placeholder=words("users.all"), autocomplete="off"
                ),
            ),
            element("button", words("users.add")),
            method="post",
            action=USERS,
            data_kept="",
            class_="line",
        ),
    )


def _role(here: Visit, role: str) -> Html:
    return element(
        "div",
        element("dt", here.words(f"role.{role}")),
        element("dd", here.words(f"role.{role}_may")),
    )


def _done(here: Visit) -> Html:
    for what in ("set", "removed"):
        if what in here.query:
            return notice("good", here.words(f"users.done_{what}", name=here.query[what]))
    return Html("")


def _path(name: str) -> str:
    return f"/v1/users/{segment(name)}"
