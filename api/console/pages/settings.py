"""The account: thresholds, zone, rates, webhooks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
from litestar import Request, get, post
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.form import IncompleteFormError, read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.settings_head import SETTINGS, settings_head
from tollkeeper.api.console.parts import (
    card_table,
    choices,
    field,
    instant,
    notice,
    number,
    proposed_address,
    refuse_unseen,
    row,
    table,
    with_code,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_THRESHOLDS = ("challenge", "deny")
_COSTS = (("chargeback", None), ("margin", "1"), ("challenge_lost", "1"))
"""The costs of wrong decisions, with the upper bound of each."""
_HELD_BY = ("user", "device", "order")
"""The keys by which held-out payments may be selected."""
_APPROVALS = ("publish", "thresholds", "lists")
"""The changes for which an account can require approval."""
_CHANGED = (
    *("thresholds", "costs", "holdout", "time_zone", "retention_days", "approvals"),
    "merchant_lists",
)
"""The settings that the form has."""
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_DECODER = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)
_NUMBER = re.compile(r"-?[0-9]{0,15}\.?[0-9]{1,15}")
"""Without an exponent: few characters may stand for a million digits, which take minutes."""


@get(SETTINGS)
async def settings(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found = await here.client.get("/v1/account")
    account = found["account"]
    webhooks = (await here.client.get("/v1/webhooks"))["webhooks"]
    lists = (await here.client.get("/v1/lists"))["lists"] if here.may("lists:read") else []
    deliveries = (await here.client.get("/v1/webhooks/deliveries", {"limit": "20"}))["deliveries"]
    content = join_html(
        settings_head(here, SETTINGS),
        notice("good", words("settings.saved")) if "saved" in here.query else Html(""),
        _form(here, account, lists)
        if here.may("settings:write")
        else _settings_text(here, account),
        element("h2", words("settings.rates")),
        _rates(here, account["rates"]),
        element("h2", words("settings.windows")),
        element(
            "p",
            words(
                "settings.held",
                entries=number(here, found["windows"]["entries"]),
                cap=number(here, found["windows"]["cap"]),
            ),
        ),
        element("h2", words("settings.webhooks")),
        _webhooks(here, webhooks, deliveries),
    )
    return html(page(here, words("frame.settings"), content))


@post(SETTINGS)
async def change_settings(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    sent = await read_form(request)
    form = await request.form()
    wanted = {
        "thresholds": {name: _number(sent[name]) for name in _THRESHOLDS},
        "costs": {name: _number(sent[name]) for name, _ in _COSTS},
        "holdout": {"percent": _number(sent["percent"]), "by": sent["by"]},
        "time_zone": sent["time_zone"],
        "retention_days": _number(sent["retention_days"]),
        "approvals": {name: bool(sent.get(f"approve_{name}")) for name in _APPROVALS},
    }
    if here.may("lists:read"):  # otherwise the form offers no lists
        wanted["merchant_lists"] = sorted(map(str, form.getall("merchant_list", [])))
    found = await here.client.get("/v1/account")
    known = found["account"]
    # What a page shows may have changed since: only what the person changed is sent.
    seen = _read_seen(sent.get("expected")) or known
    changed = {name: value for name, value in wanted.items() if value != seen.get(name)}
    unseen = (f"account.{name}" for name in changed if known[name] != seen.get(name))
    refuse_unseen(here.words("error.unseen"), unseen)
    # A node of the release before doesn't say which: it refuses what another person must approve.
    shared = {name: changed.pop(name) for name in found.get("guarded", ()) if name in changed}
    if changed:
        await here.client.send("PUT", "/v1/account", body={"account": changed})
    if shared:
        proposal = {"note": sent.get("note"), "settings": shared}
        made = await here.client.send("POST", "/v1/proposals", body={"proposal": proposal})
        return go_to(proposed_address(made["proposal"]["number"]))
    return go_to(target(SETTINGS, saved="1"))


def _read_seen(text: str) -> JsonObject:
    """Return the settings that a form was made with; nothing for a form that names none."""
    try:
        return _DECODER.decode(text) if text else {}
    except msgspec.DecodeError:
        raise IncompleteFormError("expected") from None


def _number(text: str) -> Any:
    """Return a typed number; a text that isn't one is passed on, and the interface refuses it."""
    if not _NUMBER.fullmatch(text):
        return text
    value = Decimal(text)
    return int(value) if value == value.to_integral_value() else value


def _form(here: Visit, account: JsonObject, lists: Sequence[JsonObject]) -> Html:
    words = here.words
    # Thresholds chosen on the page of scores are filled in.
    thresholds = {
        name: here.query.get(name, str(account["thresholds"][name])) for name in _THRESHOLDS
    }
    holdout, costs = account["holdout"], account["costs"]
    approvals = [
        _choice(
            f"approve_{name}", "1", words(f"settings.approve_{name}"), account["approvals"][name]
        )
        for name in _APPROVALS
    ]
    shared = [
        _choice(
            "merchant_list", each["name"], each["name"], each["name"] in account["merchant_lists"]
        )
        for each in lists
    ]
    parts = [
        _part(
            here,
            "thresholds",
            *(_amount(here, name, thresholds[name], "1") for name in _THRESHOLDS),
        ),
        _part(
            here,
            "account",
            field(
                words("settings.zone"),
                element("input", name="time_zone", value=account["time_zone"]),
            ),
            _amount(here, "retention_days", str(account["retention_days"]), None, "1"),
        ),
        _part(
            here,
            "costs",
            *(_amount(here, name, str(costs[name]), most, "any") for name, most in _COSTS),
        ),
        _part(
            here,
            "holdout",
            _amount(here, "percent", str(holdout["percent"]), "100"),
            field(
                words("rule.rollout_by"),
                choices("by", [(by, words(f"by.{by}")) for by in _HELD_BY], holdout["by"]),
            ),
        ),
        element("fieldset", element("legend", words("settings.approvals")), *approvals),
    ]
    if shared:
        legend = element("legend", words("settings.merchant_lists"))
        parts.append(element("fieldset", legend, *shared))
    note = (
        field(words("settings.note"), element("input", name="note", maxlength="500"))
        if any(account["approvals"].values())
        else Html("")
    )
    seen = _ENCODER.encode({name: account[name] for name in _CHANGED}).decode()
    return element(
        "form",
        element("input", type="hidden", name="expected", value=seen),
        element("div", *parts, class_="parts"),
        element("div", note, element("button", words("settings.save")), class_="line"),
        method="post",
        action=SETTINGS,
        data_kept="",
    )


def _part(here: Visit, name: str, *fields: Html) -> Html:
    """A group of settings, with its explanation."""
    return element(
        "fieldset",
        element("legend", here.words(f"settings.part_{name}")),
        element("div", *fields, class_="line"),
        element("p", here.words(f"settings.about_{name}"), class_="hints"),
    )


def _amount(here: Visit, name: str, value: str, most: str | None, step: str = "0.01") -> Html:
    """A field for a number of 0 or more."""
    control = element("input", type="number", name=name, step=step, min="0", max=most, value=value)
    return field(here.words(f"settings.{name}"), control)


def _choice(name: str, value: str, said: str, chosen: object) -> Html:
    box = element("input", type="checkbox", name=name, value=value, checked="" if chosen else None)
    return element("label", box, element("span", said), class_="choice")


def _settings_text(here: Visit, account: JsonObject) -> Html:
    """Show the settings to those who may not change them."""
    values = (
        ("challenge", account["thresholds"]["challenge"]),
        ("deny", account["thresholds"]["deny"]),
        ("zone", account["time_zone"]),
        ("retention_days", account["retention_days"]),
    )
    facts = [
        element("div", element("dt", here.words(f"settings.{name}")), element("dd", str(value)))
        for name, value in values
    ]
    return element("dl", *facts, class_="facts")


def _rates(here: Visit, rates: JsonObject) -> Html:
    rows = [
        row(base, currency, str(rate), numeric=(2,))
        for base, others in rates.items()
        for currency, rate in others.items()
    ]
    if not rows:
        return element("p", with_code(here.words("settings.no_rates")), class_="empty")
    titles = ("from", "to", "rate")
    return table(
        [here.words(f"settings.{each}") for each in titles], rows, here.words("settings.rates")
    )


def _webhooks(here: Visit, webhooks: list[JsonObject], deliveries: list[JsonObject]) -> Html:
    words = here.words
    if not webhooks:
        return element("p", with_code(words("settings.no_webhooks")), class_="empty")
    rows = [
        row(
            f"{each['kind']} {each['subject']}",
            each["url"],
            each["state"],
            str(each["attempts"]),
            each["error"] or "",
            "" if each["delivered_at"] is None else instant(here, each["delivered_at"]),
        )
        for each in deliveries
    ]
    titles = ("notice", "url", "state", "attempts", "error", "delivered")
    return join_html(
        element("ul", *(element("li", element("code", each["url"])) for each in webhooks)),
        card_table(
            [words(f"settings.{each}") for each in titles], rows, words("settings.webhooks")
        ),
    )
