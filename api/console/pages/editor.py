"""The rule editor: the text is checked and tested while it is typed, compared with the active
version, then published.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import read_form, rule_text
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.payment import entities
from tollkeeper.api.console.pages.proofs import prove_button
from tollkeeper.api.console.pages.rules import (
    check_live,
    difference,
    live_version,
    published_address,
    publishing_scope,
    send_proposal,
    terms_fields,
    text_diff,
)
from tollkeeper.api.console.parts import (
    control_if_allowed,
    errors_notice,
    finding,
    number,
    proposed_address,
)
from tollkeeper.api.console.rule_lists import FIELDS
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

NEW = """rule my_rule "What it is for"
  condition first "What it catches"
    when currency == "USD" and amount > 1000
    then challenge

  otherwise default

  test "a dear payment is challenged"
    given currency = "USD", amount = 1001
    expect challenge by first
"""
_CONDITION = re.compile(r"^[ \t]*condition\b", re.MULTILINE)
_OF_ACCOUNT = ("empty-list", "no-rates")
"""Warnings of what the account lacks: nothing in the text is at fault."""
_PLAIN = re.compile(r"[\w.@:+-]{1,128}")
"""Values that can be written in a rule's text without escapes."""
_NAME = re.compile(r"^[ \t]*rule[ \t]+([a-z][a-z0-9_]*)", re.MULTILINE)


@get("/console/rules/{name:str}/edit")
async def edit(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    here = await visit(request)
    found = (await here.client.get(f"/v1/rules/{segment(name)}"))["rule"]
    text = found["text"]
    if "by" in here.query and "like" in here.query:
        text = await _with_condition(here, text, here.query["by"], here.query["like"])
    return await _editor(here, text, name, found["newest"])


@get("/console/new-rule")
async def new_rule(request: Request[Any, Any, Any]) -> Response[str]:
    return await _editor(await visit(request), NEW, None, 0)


@post("/console/check")
async def check(request: Request[Any, Any, Any]) -> Response[str]:
    """Show what the interface finds in the text, in the column beside the editor."""
    here = await visit(request)
    sent = await read_form(request)
    try:
        found = await here.client.send("POST", "/v1/checks", body={"text": rule_text(sent)})
    except RefusalError as refusal:
        return html(errors_notice(refusal.errors))
    return html(_findings(here, found))


@post("/console/check.json")
async def check_data(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """Return only the diagnostics of the text, for the editor to underline."""
    here = await visit(request)
    sent = await read_form(request)
    found = await here.client.send("POST", "/v1/checks", body={"text": rule_text(sent)})
    of_text = [each for each in found["diagnostics"] if each["code"] not in _OF_ACCOUNT]
    return {"diagnostics": of_text, "formatted": found["formatted"]}


@get("/console/vocabulary.json")
async def vocabulary(request: Request[Any, Any, Any]) -> dict[str, Any]:
    """Return the names that a rule of this account may use, for completion."""
    here = await visit(request)
    found: dict[str, Any] = await here.client.get("/v1/vocabulary")
    return found


@post("/console/publish")
async def publish(request: Request[Any, Any, Any]) -> Response[str]:
    """Store the text, and activate it if requested; a refused text stays in the editor."""
    here = await visit(request)
    sent = await read_form(request)
    text, expected = rule_text(sent), sent.whole("expected")
    publish_too = sent.get("act") == "publish"
    named = _NAME.search(text)
    name = sent.get("name") or (named[1] if named else "")
    query = {"expected": str(expected)}
    if publish_too:
        query |= {"publish": "true", "until": sent.get("until"), "reason": sent.get("reason")}
    path = f"/v1/rules/{segment(name or 'my_rule')}/versions"
    try:
        await check_live(here, name, sent.get("at") if publish_too else "")
        answer = await here.client.send(
            "POST", path, {name: value for name, value in query.items() if value}, text=text
        )
    except RefusalError as refusal:
        return await _editor(here, text, name or None, expected, refusal)
    if sent.get("act") == "propose":
        try:
            number_ = await send_proposal(here, name, answer["rule"]["version"], sent)
        except RefusalError as refusal:
            return await _editor(here, text, name or None, answer["rule"]["version"], refusal)
        return go_to(proposed_address(number_))
    return go_to(published_address("published", answer["rule"]))


async def _with_condition(here: Visit, text: str, by: str, like: str) -> str:
    """Return the text with a new first condition that denies payments with the given payment's
    value.
    """
    shown = (await here.client.get(f"/v1/payments/{segment(like)}"))["payment"]
    value, place = entities(shown).get(by, ""), _CONDITION.search(text)
    if by not in FIELDS or place is None or not _PLAIN.fullmatch(value):
        return text
    said = here.now.astimezone(here.zone).strftime("%d %b %H:%M")
    condition = (
        f'  condition contain_{by} "Contained {said}"\n'
        f'    when {FIELDS[by]} == "{value}"\n'
        "    then deny\n\n"
    )
    return text[: place.start()] + condition + text[place.start() :]


async def _editor(
    here: Visit, text: str, name: str | None, newest: int, refusal: RefusalError | None = None
) -> Response[str]:
    words = here.words
    title = words("editor.new") if name is None else words("editor.title", name=name)
    rule = await _rule(here, name)
    live = await _live_text(here, rule)
    rival = await _rival(here, rule, newest, refusal)
    if rival is not None:  # the person has seen the other's version, and may store theirs after it
        newest = rival["version"]
    form = element(
        "form",
        element("input", type="hidden", name="name", value=name or ""),
        element(
            "input",
            type="hidden",
            name="expected",
            value=str(newest),
            id="expected",
            data_renewed="",
        ),
        element(
            "input",
            type="hidden",
            name="at",
            value=live_version(rule),
            id="live",
            data_renewed="",
        ),
        element(
            "textarea",
            text,
            name="text",
            id="text",
            rows="30",
            spellcheck="false",
            aria_label=words("editor.text"),
            hx_post="/console/check",
            hx_trigger="load, input changed delay:400ms",
            hx_target="#findings",
        ),
        # Enter in a field presses the form's first button.
        element(
            "div",
            *(terms_fields(here) if here.may(publishing_scope(here)) else ()),
            control_if_allowed(here, publishing_scope(here), _publish_button(here)),
            element("button", words("editor.draft"), name="act", value="draft", class_="quiet"),
            class_="line",
        ),
        element(
            "div",
            element(
                "button",
                words("editor.check"),
                formaction="/console/check",
                class_="quiet no-script",
            ),
            element(
                "button",
                words("editor.format"),
                type="button",
                id="format",
                class_="quiet with-script",
            ),
            control_if_allowed(here, "rules:write", _backtest_button(here)),
            prove_button(here),
            class_="actions",
        ),
        element("p", words("editor.leave"), class_="hints"),
        method="post",
        action="/console/publish",
        id="editor",
        data_kept="",
        data_check="/console/check.json",
        data_vocabulary="/console/vocabulary.json",
    )
    findings = element(
        "div",
        words("editor.checking"),
        id="findings",
        aria_live="polite",
    )
    content = join_html(
        element("h1", title),
        element(
            "div",
            Html("") if refusal is None else errors_notice(refusal.errors),
            Html("") if rival is None else _beside_rival(here, rival, text),
            id="refused",
            data_renewed="",
        ),
        element(
            "div",
            form,
            element(
                "section",
                findings,
                element("div", id="proofs", aria_live="polite"),
                element("div", id="backtest", aria_live="polite"),
                class_="side",
            ),
            class_="columns editing",
        ),
        element(
            "div",
            Html("") if live is None or live == text else _beside_live(here, live, text),
            id="against-live",
            data_renewed="",
        ),
    )
    status = 200 if refusal is None else refusal.status
    return html(page(here, title, content, scripts=("vendor/codemirror.js", "editor.js")), status)


def _backtest_button(here: Visit) -> Html:
    """The button's result appears in the column beside the text; without scripts, on a page of its
    own.
    """
    return element(
        "button",
        here.words("backtest.start"),
        formaction="/console/backtests",
        formtarget="_blank",
        class_="quiet",
        hx_post="/console/backtests",
        hx_target="#backtest",
        hx_select="#backtest",
        hx_swap="outerHTML",
    )


def _publish_button(here: Visit) -> Html:
    act = "propose" if here.four_eyes else "publish"
    return element("button", here.words(f"editor.{act}"), name="act", value=act)


async def _rival(
    here: Visit, rule: JsonObject | None, seen: int, refusal: RefusalError | None
) -> JsonObject | None:
    """Return the version that somebody else has stored meanwhile; None if nobody has."""
    if rule is None or refusal is None or refusal.status != HTTPStatus.CONFLICT:
        return None
    newest = rule["newest"]
    if newest == seen:
        return None
    path = f"/v1/rules/{segment(rule['name'])}"
    found: JsonObject = (await here.client.get(f"{path}/versions/{newest}"))["rule"]
    return found


def _beside_live(here: Visit, live: str, text: str) -> Html:
    return element(
        "details",
        element("summary", here.words("editor.against_live")),
        element("pre", element("code", text_diff(live, text)), class_="rule", tabindex="0"),
    )


def _beside_rival(here: Visit, rival: JsonObject, text: str) -> Html:
    return element(
        "section",
        element("h2", here.words("editor.rival", version=rival["version"])),
        element(
            "pre", element("code", text_diff(rival["text"], text)), class_="rule", tabindex="0"
        ),
    )


async def _rule(here: Visit, name: str | None) -> JsonObject | None:
    """Return the rule of this name; None if there is none yet."""
    if name is None:
        return None
    try:
        found: JsonObject = (await here.client.get(f"/v1/rules/{segment(name)}"))["rule"]
    except RefusalError:
        return None
    return found


async def _live_text(here: Visit, rule: JsonObject | None) -> str | None:
    if rule is None or rule["active"] is None:
        return None
    path = f"/v1/rules/{segment(rule['name'])}/versions/{rule['active']}"
    text: str = (await here.client.get(path))["rule"]["text"]
    return text


def _worst(severities: Sequence[str]) -> str:
    """Return the class of the heading over diagnostics of these severities."""
    return "bad" if "error" in severities else "doubtful" if severities else "good"


def _findings(here: Visit, found: JsonObject) -> Html:
    words = here.words
    diagnostics = found["diagnostics"]
    severities = [each["severity"] for each in diagnostics]
    head = words(
        "editor.found", errors=severities.count("error"), warnings=severities.count("warning")
    )
    items = [finding(each) for each in diagnostics]
    tests = found["tests"]
    passed = sum(1 for each in tests if each["passed"])
    failing = [
        element(
            "li",
            element("strong", each["title"]),
            *(
                element(
                    "p", words("editor.unmet", expected=one["expected"], came_out=one["came_out"])
                )
                for one in each["failures"]
            ),
            class_="error",
        )
        for each in tests
        if not each["passed"]
    ]
    coverage = found["coverage"]
    changed = found["differences"]
    meaning = (
        Html("")
        if changed is None
        else join_html(
            element("h2", words("editor.meaning")),
            element("ul", *(element("li", difference(each)) for each in changed))
            if changed
            else element("p", words("rule.same"), class_="empty"),
        )
    )
    windows = [
        element(
            "li",
            element("code", each["text"]),
            " ",
            words("editor.held" if each["held"] else "editor.new_window"),
        )
        for each in found["windows"]
    ]
    return join_html(
        element("h2", head, class_=_worst(severities)),
        element("ul", *items, class_="diagnostics"),
        meaning,
        element("h2", words("editor.tests", passed=passed, count=len(tests))),
        element("ul", *failing, class_="diagnostics"),
        Html("")
        if coverage is None
        else element(
            "p",
            words(
                "editor.coverage",
                percent=f"{coverage['percent']:.0f}",
                goals=number(here, coverage["goals"]),
            ),
        ),
        element("h2", words("editor.windows", count=len(windows))),
        element("ul", *windows),
    )
