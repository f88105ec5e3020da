"""Rules: the active versions, what each condition does, older versions, and how to go back."""

from __future__ import annotations

import asyncio
import difflib
import re
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, segment
from tollkeeper.api.console.form import Form, read_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.came_back import CAME_BACK
from tollkeeper.api.console.parts import (
    card_table,
    choices,
    column,
    control_if_allowed,
    field,
    finding,
    instant,
    mask_id,
    moneys,
    notice,
    number,
    payment_address,
    payments_link,
    percent,
    proposed_address,
    refuse_unseen,
    row,
    since_text,
    table,
    with_code,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

FIRST_TEST = re.compile(r"^[ \t]*test\b", re.MULTILINE)
SPANS = (("1h", "1 h"), ("6h", "6 h"), ("24h", "24 h"), ("3d", "3 d"))
"""For how long a version may be published with one click, with the text to show."""
_MUST = re.compile(r"^[ \t]*must\b", re.MULTILINE)
_OPEN = ("unproved", "untried")
"""What may have become of a `must` line, as the warnings of a publication name it."""
_VERSIONS_SHOWN = 12
"""The most versions shown of a rule."""
_DAY, _TALL = 4, 20
_TITLED = re.compile(r'^ *condition +(\w+) +"([^"\\\n]*)"', re.MULTILINE)
"""The width of a day in a trend, with the gap after it, and the height of its maximum."""


@get("/console/rules")
async def rules(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    found, month = await asyncio.gather(
        here.client.get("/v1/rules"),
        here.client.get("/v1/figures", {"by": "rule", "since": "30d"})
        if here.may("payments:read")
        else _nothing(),
    )
    decided = {each["by"]: each for each in month["figures"]}
    rows = [
        row(
            element("a", each["name"], href=rule_address(each["name"])),
            "–" if each["active"] is None else f"v{each['active']}",
            f"v{each['newest']}",
            " · ".join(_trials(here, each)) or "–",
            *_decided(here, decided.get(each["name"])),
            numeric=(4, 5, 6),
        )
        for each in found["rules"]
    ]
    titles = ("name", "active", "newest", "trials", "decided", "challenged", "denied")
    new = control_if_allowed(
        here,
        "rules:write",
        element("a", words("rules.new"), href="/console/new-rule", class_="button"),
    )
    content = join_html(
        element("header", element("h1", words("frame.rules")), new, class_="tools"),
        card_table(
            [words(f"rules.{title}") for title in titles],
            rows,
            words("frame.rules"),
            numeric=(4, 5, 6),
            class_="rows",
        )
        if rows
        else element("p", words("rules.none"), class_="empty"),
    )
    return html(page(here, words("frame.rules"), content))


async def _nothing() -> JsonObject:
    """Return empty figures, for those who may not read any."""
    return {"figures": []}


def _decided(here: Visit, month: JsonObject | None) -> tuple[str, ...]:
    """Return how many payments a rule decided recently, and how many of them it challenged and
    denied.
    """
    if month is None:
        return ("–",) * 3
    span = f"rule:{month['by']} since:{month['start']} until:{month['end']}"
    tally = month["tally"]
    more = {"challenge": " action:challenge", "deny": " action:deny"}
    return (
        payments_link(here, number(here, tally["payments"]), span),
        *(
            payments_link(here, number(here, tally["actions"][action]), f"{span}{asked}")
            for action, asked in more.items()
        ),
    )


@get("/console/rules/{name:str}")
async def rule(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    here = await visit(request)
    words = here.words
    path = f"/v1/rules/{segment(name)}"
    found = (await here.client.get(path))["rule"]
    span = {"since": "30d", "overlap": "true" if "overlap" in here.query else None}
    performance = (await here.client.get(f"{path}/performance", span))["conditions"]
    content = join_html(
        _head(here, found),
        _done(here, found),
        await _warnings(here, found),
        _performance(here, name, found["text"], performance),
        await _shadow(here, found),
        await _versions(here, found),
        element(
            "section",
            element("h2", words("rule.text", version=found["active"] or found["newest"])),
            *_text(here, found["text"]),
        ),
    )
    return html(page(here, name, content))


@post("/console/rules/{name:str}/active")
async def activate(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Activate another version."""
    here = await visit(request)
    sent = await read_form(request)
    version = sent.whole("version")
    await check_live(here, name, sent.get("expected"))
    body = {"version": version, "reason": sent.get("reason"), "until": sent.get("until") or None}
    answer = await here.client.send("PUT", f"/v1/rules/{segment(name)}/active", body=body)
    return go_to(published_address("active", answer["rule"]))


@post("/console/rules/{name:str}/propose")
async def propose(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Propose a version to another person."""
    here = await visit(request)
    sent = await read_form(request)
    number = await send_proposal(here, name, sent.whole("version"), sent)
    return go_to(proposed_address(number))


async def send_proposal(here: Visit, name: str, version: int, terms: Form) -> int:
    """Propose a version with its newest finished backtest; return the proposal's number."""
    found = (await here.client.get("/v1/backtests"))["backtests"]
    backtests = [
        each["id"]
        for each in found
        if (each["kind"], each["name"], each["version"], each["state"])
        == ("rule", name, version, "done")
    ]
    proposal = {
        "note": terms.get("reason"),
        "publish": {"name": name, "version": version, "until": terms.get("until") or None},
        "backtest": backtests[0] if backtests else None,
    }
    answer = await here.client.send("POST", "/v1/proposals", body={"proposal": proposal})
    made: int = answer["proposal"]["number"]
    return made


@post("/console/rules/{name:str}/shadow")
async def shadow(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Start a version as a shadow of the active one, or end that."""
    here = await visit(request)
    sent = await read_form(request)
    version = sent.get("version")
    path = f"/v1/rules/{segment(name)}/shadow"
    if version:
        await here.client.send("PUT", path, body={"version": sent.whole("version")})
    else:
        await here.client.send("DELETE", path)
    return go_to(target(rule_address(name), shadow=version or "none"))


@post("/console/rules/{name:str}/rollout")
async def rollout(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Roll a version out to a share of the payments, or end that."""
    here = await visit(request)
    sent = await read_form(request)
    path = f"/v1/rules/{segment(name)}/rollout"
    if sent.get("end"):
        await here.client.send("DELETE", path)
        return go_to(target(rule_address(name), rollout="none"))
    version = sent.whole("version")
    body = {"version": version, "percent": sent.whole("percent"), "by": sent["by"]}
    await here.client.send("PUT", path, body=body)
    return go_to(target(rule_address(name), rollout=str(version)))


async def check_live(here: Visit, name: str, seen: str) -> None:
    """Raise `RefusalError` if another version is live than a form was made with."""
    found = (await here.client.get(f"/v1/rules/{segment(name)}"))["rule"] if seen else None
    if found is not None and seen != live_version(found):
        active = found["active"]
        said = "rule.unseen_none" if active is None else "rule.unseen"
        refuse_unseen(here.words(said, version=active), ("rule.active",))


def live_version(rule: JsonObject | None) -> str:
    """Return which version is live, for a form; 0 for none."""
    return "0" if rule is None else str(rule["active"] or 0)


def rule_address(name: str) -> str:
    return f"/console/rules/{segment(name)}"


def published_address(done: str, version: JsonObject) -> str:
    """Return the address of a rule's page after a version was stored or made live, which finds out what
    it is warned of by itself; only what came of its proofs is known no more.
    """
    types = {each["type"] for each in version["warnings"]}
    open_ = {name: "1" if f"{name}-must" in types else None for name in _OPEN}
    return target(rule_address(version["name"]), **{done: str(version["version"])}, **open_)


def _text(here: Visit, text: str) -> tuple[Html, ...]:
    """Show the text, with its tests collapsed."""
    first = FIRST_TEST.search(text)
    at = len(text) if first is None else first.start()
    shown = element("pre", element("code", text[:at].rstrip()), class_="rule", tabindex="0")
    if first is None:
        return (shown,)
    tests = element("pre", element("code", text[at:].rstrip()), class_="rule", tabindex="0")
    count = len(FIRST_TEST.findall(text))
    summary = element("summary", here.words("rule.tests", count=count))
    return (shown, element("details", summary, tests))


def _trials(here: Visit, rule: JsonObject) -> list[str]:
    """Return what is on trial beside the active version."""
    said = []
    if rule["shadow"] is not None:
        said.append(here.words("rules.shadow", version=rule["shadow"]))
    if rule["rollout"] is not None:
        trial = rule["rollout"]
        said.append(here.words("rules.rollout", version=trial["version"], percent=trial["percent"]))
    return said


def _head(here: Visit, found: JsonObject) -> Html:
    active = found["active"]
    state: str = (
        here.words("rule.inactive") if active is None else here.words("rule.active", version=active)
    )
    if found["until"] is not None:
        state = join_html(state, " ", _planned_end(here, found))
    if "filling" in found:
        said = here.words("rule.filling", share=percent(here, found["filling"]))
        state = join_html(state, " · ", said)
    address = f"{rule_address(found['name'])}/edit"
    edit = control_if_allowed(
        here,
        "rules:write",
        element("a", here.words("rule.edit"), href=address, class_="button"),
    )
    return element(
        "header",
        element("h1", found["name"]),
        element("p", state, *(f" · {said}" for said in _trials(here, found))),
        edit,
        class_="tools",
    )


def _planned_end(here: Visit, found: JsonObject) -> Html:
    """Say when the active version ends, and what follows it."""
    words, former = here.words, found["former"]
    then = words("rule.then_none") if former is None else words("rule.then", version=former)
    return element(
        "strong",
        words("rule.until"),
        " ",
        instant(here, found["until"], "%d %b %H:%M"),
        ", ",
        then,
        class_="action challenge",
    )


def terms_fields(here: Visit) -> tuple[Html, Html]:
    """Fields for why a version is published, and for how long."""
    spans = [("", here.words("rule.for_good"))]
    spans += [(span, here.words("rule.for_span", span=shown)) for span, shown in SPANS]
    return (
        field(
            here.words("rule.reason"),
            element("input", name="reason", maxlength="500", autocomplete="off"),
        ),
        field(here.words("rule.how_long"), choices("until", spans)),
    )


def _done(here: Visit, found: JsonObject) -> Html:
    for what in ("active", "shadow", "rollout", "published"):
        if what in here.query:
            version = here.query[what]
            is_later = what == "active" and version != str(found["active"])
            return notice(
                "good", here.words(f"rule.done_{'later' if is_later else what}", version=version)
            )
    return Html("")


async def _warnings(here: Visit, found: JsonObject) -> Html:
    """Show what the version that was just stored or made live is warned of."""
    number = here.query.get("published") or here.query.get("active") or ""
    if number not in {str(each["version"]) for each in found["versions"]}:
        return Html("")
    path = f"/v1/rules/{segment(found['name'])}/versions/{number}"
    text = (await here.client.get(path))["rule"]["text"]
    checked = await here.client.send("POST", "/v1/checks", body={"text": text})
    items = [finding(each) for each in checked["diagnostics"] if each["severity"] == "warning"]
    if _MUST.search(text):
        open_ = (name for name in _OPEN if name in here.query)
        items += [element("li", with_code(here.words(f"rule.{name}"))) for name in open_]
    if not items:
        return Html("")
    said = here.words("rule.warned", version=number)
    return notice("warning", element("p", said), element("ul", *items))


def _performance(here: Visit, name: str, text: str, conditions: list[JsonObject]) -> Html:
    words = here.words
    titles_of = dict(_TITLED.findall(text))
    rows = []
    for each in conditions:
        met = each["condition"]
        tally = each["tally"]
        query = f"rule:{name} version:{each['version']} condition:{met or 'none'} since:30d"
        precision = each["precision"]
        rows.append(
            row(
                element(
                    "span",
                    met or words("rule.no_condition"),
                    element("small", titles_of[met]) if met in titles_of else Html(""),
                    _overlap(here, each),
                    class_="name",
                ),
                f"v{each['version']}",
                payments_link(here, number(here, tally["payments"]), query),
                column(moneys(here, each["money"])),
                payments_link(here, number(here, tally["actions"]["deny"]), f"{query} action:deny"),
                _precision(here, precision),
                _came_back(here, name, each),
                since_text(here, each["last"]),
                sparkline(each["trend"]),
                numeric=(2, 3, 4, 5, 6, 7),
            )
        )
    titles = (
        "condition",
        "version",
        "hits",
        "money",
        "denied",
        "precision",
        "came_back",
        "last",
        "trend",
    )
    immature = max((float(each["immature"] or 0) for each in conditions), default=0.0)
    return element(
        "section",
        element("h2", words("rule.performance")),
        card_table(
            [words(f"rule.{title}") for title in titles],
            rows,
            words("rule.performance"),
            numeric=(2, 3, 4, 5, 6, 7),
            class_="rows",
        ),
        element("p", words("rule.immature", share=percent(here, immature)), class_="hints"),
        Html("")
        if "overlap" in here.query
        else element("p", element("a", words("rule.overlap"), href=here.address(overlap="1"))),
    )


def _came_back(here: Visit, name: str, condition: JsonObject) -> Html:
    """The share of denials after which somebody came back and paid, leading to these."""
    back = condition["came_back"]
    share = percent(here, back["succeeded"], back["of"])
    if not (back["succeeded"] and here.may("personal:read")):
        return element("span", share)
    of = {"version": str(condition["version"]), "condition": condition["condition"] or "none"}
    return element("a", share, href=target(CAME_BACK, rule=name, **of, followed="1"))


def _overlap(here: Visit, condition: JsonObject) -> Html:
    """Show which later conditions would have caught its hits as well."""
    also = condition["also_met"]
    if not also["conditions"]:
        return Html("")
    said = ", ".join(f"{name} {number(here, count)}" for name, count in also["conditions"].items())
    return element(
        "small", here.words("rule.also_met", of=number(here, also["of"]), conditions=said)
    )


def _precision(here: Visit, precision: JsonObject) -> str:
    if precision["share"] is None:
        return here.words("rule.no_labels")
    low, high = float(precision["low"]), float(precision["high"])
    return f"{percent(here, precision['share'])} ({100 * low:.0f}–{100 * high:.0f})"


def sparkline(counts: list[int]) -> Html:
    """Draw counts by day as small bars, with the numbers for screen readers."""
    most = max(counts, default=0)
    bars = "".join(
        f"M{_DAY * day} {_TALL}v-{max(2, round(_TALL * count / most)) if count else 1}h{_DAY - 1}V{_TALL}z"
        for day, count in enumerate(counts)
    )
    return element(
        "svg",
        element("path", d=bars),
        viewBox=f"0 0 {_DAY * len(counts)} {_TALL}",
        class_="spark",
        role="img",
        aria_label=", ".join(map(str, counts)),
    )


async def _shadow(here: Visit, found: JsonObject) -> Html:
    if found["shadow"] is None:
        return Html("")
    report = (await here.client.get(f"/v1/rules/{segment(found['name'])}/shadow"))["shadow"]
    rows = [
        row(
            f"{turn['was']} → {turn['would_be']}",
            number(here, turn["count"]),
            _examples(here, turn["examples"]),
            numeric=(1,),
        )
        for turn in report["turns"]
    ]
    end = element(
        "form",
        element("button", here.words("rule.end_shadow"), name="version", value="", class_="quiet"),
        method="post",
        action=f"{rule_address(found['name'])}/shadow",
    )
    return element(
        "section",
        element("h2", here.words("rule.shadow")),
        element(
            "p",
            here.words(
                "rule.shadow_count",
                version=report["version"],
                evaluated=number(here, report["evaluated"]),
                changed=number(here, report["changed"]),
            ),
            ""
            if report["since"] is None
            else " " + here.words("rule.shadow_since", since=since_text(here, report["since"])),
        ),
        table(
            [here.words(f"rule.{title}") for title in ("turn", "otherwise", "examples")],
            rows,
            here.words("rule.shadow"),
            numeric=(1,),
        ),
        control_if_allowed(here, "rules:write", end),
    )


def _examples(here: Visit, examples: list[JsonObject]) -> Html:
    """Show payments that a shadow would have decided differently."""
    return join_html(
        *(
            element(
                "span",
                element("a", mask_id(each["payment"]), href=payment_address(each["payment"]))
                if here.may("personal:read")
                else mask_id(each["payment"]),
                " ",
            )
            for each in examples
        )
    )


async def _versions(here: Visit, found: JsonObject) -> Html:
    words, name = here.words, found["name"]
    path = f"/v1/rules/{segment(name)}/versions"
    numbers = range(found["newest"], max(0, found["newest"] - _VERSIONS_SHOWN), -1)
    versions = await asyncio.gather(*(here.client.get(f"{path}/{each}") for each in numbers))
    rows = []
    for each in (answer["rule"] for answer in versions):
        number_ = each["version"]
        is_active = number_ == found["active"]
        before = number_ - 1
        compare = (
            element(
                "a",
                words("rule.compare", version=before),
                href=target(
                    f"{rule_address(name)}/compare", before=str(before), after=str(number_)
                ),
            )
            if before
            else Html("")
        )
        act = (
            words("rule.live")
            if is_active
            else join_html(
                control_if_allowed(here, publishing_scope(here), _activation(here, found, number_)),
                control_if_allowed(
                    here,
                    "rules:write",
                    _button(f"{rule_address(name)}/shadow", number_, words("rule.as_shadow")),
                ),
                control_if_allowed(here, "rules:write", backtest_button(here, name, number_)),
            )
        )
        stored = each.get("stored_at") or each.get("at")
        rows.append(
            row(
                f"v{number_}",
                each.get("stored_by") or each.get("by") or "",
                instant(here, stored) if stored else "",
                compare,
                act,
            )
        )
    titles = ("version", "by", "stored", "changes", "act")
    return element(
        "section",
        element("h2", words("rule.versions")),
        card_table([words(f"rule.{title}") for title in titles], rows, words("rule.versions")),
        Html("")
        if here.four_eyes
        else control_if_allowed(here, "rules:publish", _rollout_form(here, found)),
    )


def _button(action: str, version: int, text: str) -> Html:
    return element(
        "form",
        element("button", text, name="version", value=str(version), class_="quiet"),
        method="post",
        action=action,
        class_="inline",
    )


def publishing_scope(here: Visit) -> str:
    """Return the scope needed to publish, or to propose if another person must approve."""
    return "rules:write" if here.four_eyes else "rules:publish"


def _activation(here: Visit, rule: JsonObject, version: int) -> Html:
    said, act = ("propose", "propose") if here.four_eyes else ("activate", "active")
    return element(
        "details",
        element("summary", here.words(f"rule.{said}")),
        element(
            "form",
            element("input", type="hidden", name="expected", value=live_version(rule)),
            *terms_fields(here),
            element("button", here.words(f"rule.{said}_now"), name="version", value=str(version)),
            method="post",
            action=f"{rule_address(rule['name'])}/{act}",
            data_kept="",
            class_="line",
        ),
        class_="inline",
    )


def backtest_button(here: Visit, name: str, version: int) -> Html:
    """A form that starts a backtest of a stored version."""
    return element(
        "form",
        element("input", type="hidden", name="name", value=name),
        element(
            "button",
            here.words("backtest.start"),
            name="version",
            value=str(version),
            class_="quiet",
        ),
        method="post",
        action="/console/backtests",
        class_="inline",
    )


def _rollout_form(here: Visit, found: JsonObject) -> Html:
    words = here.words
    versions = [(str(each), f"v{each}") for each in range(found["newest"], 0, -1)]
    keys = [(key, words(f"by.{key}")) for key in ("user", "device", "order")]
    end = (
        element("button", words("rule.end_rollout"), name="end", value="1", class_="quiet")
        if found["rollout"] is not None
        else Html("")
    )
    return element(
        "form",
        field(words("rule.version"), choices("version", [*versions[:_VERSIONS_SHOWN]])),
        field(
            words("rule.percent"),
            element("input", type="number", name="percent", min="1", max="99", value="10"),
        ),
        field(words("rule.rollout_by"), choices("by", keys)),
        element("button", words("rule.start_rollout"), class_="quiet"),
        end,
        method="post",
        action=f"{rule_address(found['name'])}/rollout",
        data_kept="",
        class_="line",
    )


@get("/console/rules/{name:str}/compare")
async def compare(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[str]:
    """Compare two versions: in meaning, then in text."""
    here = await visit(request)
    words = here.words
    before, after = here.query["before"], here.query["after"]
    path = f"/v1/rules/{segment(name)}"
    found, old, new = await asyncio.gather(
        here.client.get(f"{path}/diff", {"from": before, "to": after}),
        here.client.get(f"{path}/versions/{segment(before)}"),
        here.client.get(f"{path}/versions/{segment(after)}"),
    )
    differences = found["differences"]
    items = [element("li", difference(each)) for each in differences]
    content = join_html(
        element("h1", words("rule.compared", name=name, before=before, after=after)),
        element("h2", words("rule.meaning")),
        element("ul", *items) if items else element("p", words("rule.same"), class_="empty"),
        element("h2", words("rule.words")),
        element(
            "pre",
            element("code", text_diff(old["rule"]["text"], new["rule"]["text"])),
            class_="rule",
            tabindex="0",
        ),
    )
    return html(page(here, name, content))


def difference(each: JsonObject) -> Html:
    aspect = f" · {each['aspect']}" if each.get("aspect") else ""
    values = [
        element(tag, str(each[name]))
        for name, tag in (("before", "del"), ("after", "ins"))
        if each.get(name)
    ]
    shown = (part for value in values for part in (" ", value))
    return join_html(
        element("strong", each["change"]), " ", with_code(f"{each['what']}{aspect}"), *shown
    )


def text_diff(before: str, after: str) -> Html:
    """Return a diff by lines: removed ones and added ones."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return join_html(
        *(
            element("span", line, "\n", class_=kinds.get(line[:1], "same"))
            for line in list(lines)[2:]
        )
    )
