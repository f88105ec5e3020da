"""One payment: the reason for its decision, related payments, its outcome, and actions on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath
from litestar.response import Response

from tollkeeper.api.console.answers import go_to, html
from tollkeeper.api.console.client import JsonObject, RefusalError, segment
from tollkeeper.api.console.form import IncompleteFormError, read_form
from tollkeeper.api.console.highlight import highlight_expression, highlight_rule
from tollkeeper.api.console.list_form import BLOCK_HOURS, list_form
from tollkeeper.api.console.page import page
from tollkeeper.api.console.pages.lists import find_held, send_entries
from tollkeeper.api.console.parts import (
    action_badge,
    action_of,
    card_table,
    control_if_allowed,
    decimal,
    errors_notice,
    field,
    instant,
    label_badge,
    localize,
    mask_card,
    mask_email,
    mask_entity,
    mask_id,
    mask_ip,
    money,
    notice,
    number,
    payment_address,
    payments_link,
    percent,
    proposed_address,
    reason,
    refuse_unseen,
    row,
    since_text,
    table,
    text_of,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

SOURCE = "review"
"""The label source for verdicts given here."""
SHARED_FIELDS = ("device", "ip", "card", "bin", "user", "email", "merchant")
"""The values of a payment that lists can hold."""
_VERDICTS = (("fraud", "f"), ("legitimate", "l"), ("unsure", "u"))


@get("/console/payments/{id_:str}")
async def payment(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    return await _page(await visit(request), id_)


@post("/console/payments/{id_:str}/reveal")
async def reveal(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    """Show one value in clear, only on the page that answers."""
    here = await visit(request)
    wanted = (await read_form(request))["field"]
    path = f"/v1/payments/{segment(id_)}/reveals"
    return await _page(
        here,
        id_,
        (await here.client.send("POST", path, body={"reveal": {"field": wanted}}))["reveal"],
    )


@post("/console/payments/{id_:str}/notes")
async def write_note(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    here = await visit(request)
    text = (await read_form(request))["text"].replace("\r\n", "\n")
    path = f"/v1/payments/{segment(id_)}/notes"
    await here.client.send("POST", path, body={"note": {"text": text}})
    return go_to(target(payment_address(id_), noted="1"))


async def _page(here: Visit, id_: str, revealed: JsonObject | None = None) -> Response[str]:
    """Show the payment; everything personal is masked except what was just revealed."""
    path = f"/v1/payments/{segment(id_)}"
    ask = here.client.get
    found = await ask(path)
    shown = found["payment"]
    related, labels, notes = await asyncio.gather(
        ask(f"{path}/related"), ask(f"{path}/labels"), ask(f"{path}/notes")
    )
    explanation, refused = await _read_explanation(here, path)
    # Related payments and trials cover all merchants, so users limited to some don't see them.
    tried = [] if here.merchants else (await ask(f"{path}/shadows"))["shadows"]
    rule = None if explanation is None else explanation.get("rule")
    text = None if rule is None else await _read_text(here, rule)
    masks = _masks(shown)
    adding = await list_form(here, id_, entities(shown))
    content = join_html(
        _verdict_notice(here, id_),
        _head(here, shown, labels["label"], _because(here, rule, text, masks)),
        control_if_allowed(here, "labels:write", _verdicts(here, id_)),
        Html("") if refused is None else errors_notice(refused.errors),
        element(
            "div",
            element(
                "div",
                _rule(here, explanation, text, masks),
                _trials(here, tried),
                _score(here, explanation),
                class_="main",
            ),
            element(
                "div",
                _facts(here, shown, revealed),
                _related_table(here, id_, related["related"]),
                element("section", element("h2", here.words("payment.add_to_list")), adding)
                if adding
                else adding,
                _timeline(here, shown, found["history"], labels["labels"]),
                _notes(here, id_, notes["notes"]),
                class_="side",
            ),
            class_="columns wide",
        ),
    )
    title = here.words("payment.title", id=id_)
    return html(page(here, title, content, scripts=("verdicts.js",)))


@post("/console/payments/{id_:str}/label")
async def label(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    """Set or remove the label of a review."""
    here = await visit(request)
    sent = await read_form(request)
    verdict = sent.get("label")
    await judge(here, id_, verdict, sent.get("note"))
    return go_to(target(payment_address(id_), labelled=verdict or "none"))


async def judge(here: Visit, id_: str, verdict: str, note: str = "") -> None:
    """Label the payment with a person's verdict; an empty one removes the label."""
    path = f"/v1/payments/{segment(id_)}/labels/{SOURCE}"
    if verdict:
        body = {"label": verdict, "reason": note or None}
        await here.client.send("PUT", path, body=body)
    else:
        await here.client.send("DELETE", path)


@post("/console/payments/{id_:str}/list")
async def add_to_list(request: Request[Any, Any, Any], id_: FromPath[str]) -> Response[str]:
    """Add one of the payment's values to a list, for good or for some hours."""
    here = await visit(request)
    sent = await read_form(request)
    by, _, name = sent["put"].partition(":")
    shown = (await here.client.get(f"/v1/payments/{segment(id_)}"))["payment"]
    value, span = entities(shown).get(by), sent.get("span")
    if value is None or (span and span not in BLOCK_HOURS):
        raise IncompleteFormError("put" if value is None else "span")
    entry: dict[str, str] = {"value": value, "note": sent.get("note") or f"payment {id_}"}
    end = here.now + timedelta(hours=BLOCK_HOURS.get(span, 0))
    if span:
        entry["expires_at"] = text_of(end)
    if here.list_approval:
        number_ = await send_entries(here, name, [entry], entry["note"])
        return go_to(proposed_address(number_))
    held = await find_held(here, (name,), value)
    if held is not None and span and (held.until is None or end < held.until):
        refuse_unseen(here.words("payment.held_longer", list=name), ("entry.expires_at",))
    await here.client.send("PUT", f"/v1/lists/{segment(name)}/entries", body={"entries": [entry]})
    if sent.get("shared"):  # the form came from the page of payments that share the value
        return go_to(target("/console/payments", of=id_, by=by, listed=name))
    return go_to(target(payment_address(id_), listed=name))


def entities(shown: JsonObject) -> dict[str, str]:
    """Return those of `SHARED_FIELDS` that a payment has."""
    card = shown.get("method", {}).get("card") or {}
    device = shown.get("device") or {}
    user = shown.get("user") or {}
    found = {
        "device": (device.get("fingerprint") or {}).get("id"),
        "ip": device.get("ip_address"),
        "card": _fingerprint(card),
        "bin": card.get("bin"),
        "user": user.get("id"),
        "email": user.get("email"),
        "merchant": (shown.get("merchant") or {}).get("id"),
    }
    return {by: value for by, value in found.items() if value}


def _fingerprint(card: JsonObject) -> str | None:
    if not card.get("bin") or not card.get("last_four"):
        return None
    return f"{card['bin']}-{card['last_four']}"


async def _read_explanation(
    here: Visit, path: str
) -> tuple[JsonObject | None, RefusalError | None]:
    if here.merchants:  # the records that were counted may belong to other merchants
        return None, None
    try:
        return (await here.client.get(f"{path}/explanation"))["explanation"], None
    except RefusalError as refusal:
        return None, refusal


def _verdict_notice(here: Visit, id_: str) -> Html:
    words = here.words
    if "noted" in here.query:
        return notice("good", words("payment.noted"))
    if listed := here.query.get("listed"):
        return notice("good", words("payment.listed", list=listed))
    labelled = here.query.get("labelled")
    if labelled is None:
        return Html("")
    if labelled == "none":
        return notice("good", words("payment.unlabelled"))
    undo = element(
        "form",
        element(
            "button",
            words("payment.undo"),
            " ",
            element("kbd", "z"),
            name="label",
            value="",
            data_undo="",
            class_="quiet",
        ),
        method="post",
        action=f"{payment_address(id_)}/label",
        class_="inline",
    )
    return notice("good", words("payment.labelled", label=words(f"label.{labelled}")), " ", undo)


def _head(here: Visit, shown: JsonObject, known: str | None, because: Html) -> Html:
    words = here.words
    analyses = shown.get("analyses") or {}
    rule = analyses.get("rule")
    by = (
        words("payment.no_rule")
        if not rule
        else join_html(
            element("a", rule["name"], href=f"/console/rules/{segment(rule['name'])}")
            if here.may("rules:read")
            else rule["name"],
            f" v{rule['version']}",
        )
    )
    why = reason(here, shown)
    return element(
        "header",
        element(
            "h1",
            action_badge(here, action_of(shown)),
            " ",
            why or words("payment.no_reason"),
        ),
        because,
        element(
            "p",
            words("payment.by"),
            " ",
            by,
            " · ",
            money(here, shown.get("amount"), shown["currency"]),
            " · ",
            instant(here, shown["timestamp"], "%d %b %Y %H:%M:%S"),
            " · ",
            element("code", shown["id"]),
            " ",
            label_badge(here, known),
        ),
        class_="decision",
    )


def _masks(shown: JsonObject) -> dict[str, str]:
    """Return the personal values of a payment, each with its mask."""
    card = shown.get("method", {}).get("card") or {}
    last = card.get("last_four")
    persons = {"device", "ip", "card", "user", "email", "order"}
    found = {by: value for by, value in entities(shown).items() if by in persons}
    masks = {value: mask_entity(by, value) for by, value in found.items()}
    if order := (shown.get("order") or {}).get("id"):
        masks[order] = mask_entity("order", order)
    return masks | ({last: f"…{last[-2:]}"} if last else {})


async def _read_text(here: Visit, rule: JsonObject) -> str | None:
    """Return the text of the version that decided; None for those who may not read rules."""
    if not here.may("rules:read"):
        return None
    path = f"/v1/rules/{segment(rule['rule'])}/versions/{rule['version']}"
    text: str = (await here.client.get(path))["rule"]["text"]
    return text


def _because(
    here: Visit, rule: JsonObject | None, text: str | None, masks: Mapping[str, str]
) -> Html:
    """Show the expression that decided with its values; if none did, the one that came nearest."""
    if rule is None or text is None:
        return Html("")
    wanted = rule["met"] or rule["nearest"]
    found = next((each for each in rule["conditions"] if each["name"] == wanted), None)
    if found is None:
        return Html("")
    lit = element("code", highlight_expression(text, found["when"], masks))
    said = "" if rule["met"] else here.words("payment.nearest", condition=found["name"])
    return element("p", said, " ", lit, class_="because")


def _rule(
    here: Visit, explanation: JsonObject | None, text: str | None, masks: Mapping[str, str]
) -> Html:
    words = here.words
    if explanation is None:
        return Html("")
    rule = explanation.get("rule")
    repeated = explanation["repeated"]
    exact = (
        element("p", "✓ ", words("payment.repeated"), class_="hints good")
        if repeated
        else notice("warning", words("payment.not_repeated"))
    )
    if rule is None:
        return join_html(exact, element("p", words("payment.no_rule"), class_="empty"))
    body = (
        _conditions(here, rule)
        if text is None
        else element(
            "pre", element("code", highlight_rule(text, rule, masks)), class_="rule", tabindex="0"
        )
    )
    return element(
        "section",
        element("h2", words("payment.rule")),
        exact,
        body,
        _histories(here, rule),
    )


def _trials(here: Visit, tried: list[JsonObject]) -> Html:
    """Show what each version on trial would have decided."""
    if not tried:
        return Html("")
    items = []
    for each in tried:
        name = f"{each['name']} v{each['version']}"
        would = each["would"]
        said = (
            here.words("payment.trial_failed")
            if would is None
            else join_html(
                action_badge(here, would["action"]),
                element("small", f" {would['condition']}") if would["condition"] else "",
            )
        )
        shown = (
            element("a", name, href=f"/console/rules/{segment(each['name'])}")
            if each["kind"] == "rule" and here.may("rules:read")
            else element("span", name)
        )
        items.append(element("li", shown, " → ", said))
    return element("section", element("h2", here.words("payment.trials")), element("ul", *items))


def _conditions(here: Visit, rule: JsonObject) -> Html:
    return table(
        [here.words("rule.condition"), here.words("payment.outcome")],
        [
            row(join_html(element("code", each["name"]), " ", each["title"] or ""), each["outcome"])
            for each in rule["conditions"]
        ],
        here.words("payment.rule"),
    )


def _histories(here: Visit, rule: JsonObject) -> Html:
    found = rule["histories"]
    if not found:
        return Html("")
    rows = []
    for each in found:
        records = each["records"]
        listed = (
            each["note"] or ""
            if records is None
            else join_html(
                *(
                    join_html(
                        element("a", mask_id(one["id"]), href=payment_address(one["id"])), " "
                    )
                    for one in records
                )
            )
        )
        rows.append(row(element("code", each["text"]), each["value"], listed, numeric=(1,)))
    return element(
        "details",
        element("summary", here.words("payment.histories", count=len(found))),
        table(
            [here.words(f"payment.{title}") for title in ("counted", "value", "records")],
            rows,
            here.words("payment.counted"),
            numeric=(1,),
        ),
    )


def _score(here: Visit, explanation: JsonObject | None) -> Html:
    card = None if explanation is None else explanation.get("scorecard")
    if card is None:
        return Html("")
    words = here.words
    loud = sorted(
        (each for each in card["signals"] if each["contribution"]),
        key=lambda each: -abs(each["contribution"]),
    )
    silent = [each for each in card["signals"] if not each["contribution"]]
    most = max((abs(float(each["contribution"])) for each in loud), default=1.0)
    rows = [
        row(
            each["title"] or each["name"],
            element(
                "meter",
                min="0",
                max="100",
                value=f"{100 * abs(float(each['contribution'])) / most:.0f}",
                class_="deny" if each["contribution"] > 0 else "allow",
                aria_hidden="true",
            ),
            _signed(here, each["contribution"]),
            numeric=(2,),
        )
        for each in loud
    ]
    thresholds = explanation["thresholds"] if explanation is not None else {}
    return element(
        "section",
        element("h2", words("payment.score", score=decimal(here, card["score"], 2))),
        element(
            "p",
            words(
                "payment.thresholds",
                challenge=decimal(here, thresholds["challenge"], 2),
                deny=decimal(here, thresholds["deny"], 2),
            ),
        )
        if thresholds
        else Html(""),
        table(
            [words(f"payment.{title}") for title in ("signal", "weight", "adds")],
            [
                row(words("payment.baseline"), "", _signed(here, card["baseline"]), numeric=(2,)),
                *rows,
            ],
            words("payment.signals"),
            numeric=(2,),
            class_="signals",
        ),
        element(
            "details",
            element("summary", words("payment.silent", count=len(silent))),
            element("ul", *(element("li", each["title"] or each["name"]) for each in silent)),
        ),
    )


def _signed(here: Visit, value: Any) -> str:
    """Return a signal's contribution, with a minus sign as wide as the plus."""
    return localize(here, f"{float(value):+.2f}").replace("-", "−")


def _facts(here: Visit, shown: JsonObject, revealed: JsonObject | None) -> Html:
    device = shown.get("device") or {}
    user = shown.get("user") or {}
    masked = {
        "card": mask_card(shown.get("method", {}).get("card")),
        "email": mask_email(user.get("email")),
        "user": mask_id(user.get("id")),
        "ip": mask_ip(device.get("ip_address")),
        "device": mask_id((device.get("fingerprint") or {}).get("id")),
        "order": mask_id((shown.get("order") or {}).get("id")),
    }
    facts: dict[str, str] = {
        "status": here.words(f"status.{shown['status']}"),
        "type": here.words(f"type.{shown['type']}"),
        "merchant": (shown.get("merchant") or {}).get("id") or "–",
        **{
            name: _masked(here, shown["id"], name, value, revealed)
            for name, value in masked.items()
        },
    }
    rows = [
        element("div", element("dt", here.words(f"by.{name}")), element("dd", value))
        for name, value in facts.items()
    ]
    return element(
        "section",
        element("h2", here.words("payment.facts")),
        element("dl", *rows, class_="facts"),
        element("p", here.words("payment.reveal_note"), class_="hints"),
    )


def _masked(here: Visit, id_: str, name: str, value: str, revealed: JsonObject | None) -> str:
    """Show a masked value with a button to reveal it; in clear if it was just revealed."""
    shown = f"shown-{name}"
    if revealed is not None and revealed["field"] == name:
        return element("code", revealed["value"], id=shown, tabindex="-1", autofocus="")
    if not value or value == "–":
        return "–"
    action = f"{payment_address(id_)}/reveal"
    say = f"{here.words('payment.reveal')}: {here.words(f'by.{name}')}"
    return join_html(
        value,
        " ",
        element(
            "form",
            element(
                "button",
                here.words("payment.reveal"),
                name="field",
                value=name,
                class_="quiet",
                aria_label=say,
            ),
            method="post",
            action=action,
            hx_post=action,
            hx_target="closest dd",
            hx_select=f"#{shown}",
            class_="inline",
        ),
    )


def _notes(here: Visit, id_: str, notes: list[JsonObject]) -> Html:
    words = here.words
    items = [
        element("li", instant(here, each["at"]), " ", each["by"], element("p", each["text"]))
        for each in notes
    ]
    if not items and not here.may("labels:write"):
        return Html("")
    writing = element(
        "form",
        field(
            words("payment.note"),
            element("textarea", name="text", rows="2", maxlength="1000", required=""),
        ),
        element("button", words("payment.write_note"), class_="quiet"),
        method="post",
        action=f"{payment_address(id_)}/notes",
        data_kept="",
        class_="stack",
    )
    return element(
        "section",
        element("h2", words("payment.notes")),
        element("ol", *items, class_="timeline notes") if items else Html(""),
        control_if_allowed(here, "labels:write", writing),
    )


def _related_table(here: Visit, id_: str, related: list[JsonObject]) -> Html:
    rows = []
    for each in related:
        tally = each["tally"]
        rows.append(
            row(
                element(
                    "a",
                    element("small", here.words(f"by.{each['by']}")),
                    " ",
                    element("span", mask_entity(each["by"], each["value"])),
                    href=target("/console/payments", of=id_, by=each["by"]),
                    class_="name",
                ),
                payments_link(here, number(here, tally["payments"]), None, of=id_, by=each["by"]),
                percent(here, tally["actions"]["deny"], tally["payments"]),
                payments_link(
                    here,
                    number(here, tally["labels"]["fraud"]),
                    "label:fraud",
                    of=id_,
                    by=each["by"],
                ),
                since_text(here, each["first"]),
                numeric=(1, 2, 3, 4),
            )
        )
    titles = ("shares", "payments", "denied", "fraud", "first")
    return element(
        "section",
        element("h2", here.words("payment.related")),
        card_table(
            [here.words(f"payment.{title}") for title in titles],
            rows,
            here.words("payment.related"),
            numeric=(1, 2, 3, 4),
            class_="rows",
        ),
    )


def _timeline(
    here: Visit, shown: JsonObject, history: list[JsonObject], labels: list[JsonObject]
) -> Html:
    moments = [
        (
            each["at"],
            here.words(f"payment.{each['kind']}", status=here.words(f"status.{each['status']}")),
        )
        for each in history
    ]
    for each in shown.get("transactions") or ():
        code = (each.get("connector") or {}).get("response_code")
        status = here.words(f"status.{each['status']}")
        said = here.words("payment.transaction", status=status, code=code or "–")
        moments.append((each["timestamp"], said))
    for each in labels:
        said = here.words(
            "payment.label",
            source=here.words(f"source.{each['source']}"),
            label=here.words(f"label.{each['label']}"),
        )
        said += f": {each['reason']}" if each["reason"] else ""
        moments.append((each["at"], said))
    items = [
        element("li", instant(here, at), " ", said)
        for at, said in sorted(moments, key=lambda each: each[0])
    ]
    return element(
        "section",
        element("h2", here.words("payment.timeline")),
        element("ol", *items, class_="timeline"),
    )


def _verdicts(here: Visit, id_: str) -> Html:
    buttons = [
        element(
            "button",
            here.words(f"label.{name}"),
            " ",
            element("kbd", key),
            name="label",
            value=name,
            data_key=key,
            class_=f"verdict {name}",
        )
        for name, key in _VERDICTS
    ]
    return element(
        "form",
        *buttons,
        field(here.words("payment.verdict_note"), element("input", name="note", maxlength="200")),
        method="post",
        action=f"{payment_address(id_)}/label",
        class_="verdicts",
        aria_label=here.words("payment.verdict"),
    )
