"""Proofs about a text before it is published, and its differences from the active version."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.client import JsonObject, RefusalError
from tollkeeper.api.console.form import read_form, rule_text
from tollkeeper.api.console.parts import errors_notice
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

_MARKS = {"proved": "✓", "refuted": "✗", "not proved": "?"}
_CLASSES = {"refuted": "error", "not proved": "warning"}


@post("/console/proofs")
async def prove(request: Request[Any, Any, Any]) -> Response[str]:
    """Prove the rule, and show a payment for each claim that doesn't hold."""
    here = await visit(request)
    sent = {"text": rule_text(await read_form(request))}
    try:
        found = await here.client.send("POST", "/v1/checks", {"prove": "true"}, sent)
    except RefusalError as refusal:
        return html(errors_notice(refusal.errors))
    proofs = found.get("proofs")
    return html(Html("") if proofs is None else _findings(here, proofs))


def prove_button(here: Visit) -> Html:
    """A button; its result appears in the column beside the text."""
    return element(
        "button",
        here.words("proofs.start"),
        formaction="/console/proofs",
        formtarget="_blank",
        class_="quiet",
        hx_post="/console/proofs",
        hx_target="#proofs",
    )


def _findings(here: Visit, found: JsonObject) -> Html:
    words = here.words
    items = [
        element("li", *_told(here, each), class_=_CLASSES.get(each["answer"], ""))
        for each in found["proofs"]
    ]
    items += [
        element(
            "li", f"{_MARKS['not proved']} ", words("proofs.untried", of=each), class_="warning"
        )
        for each in found["untried"]
    ]
    rest = Html("") if found["complete"] else element("p", words("proofs.late"), class_="hints")
    return join_html(
        element("h2", words("proofs.title")), element("ul", *items, class_="diagnostics"), rest
    )


def _told(here: Visit, proof: JsonObject) -> tuple[Html | str, ...]:
    words, of, because = here.words, proof["of"], ", ".join(proof["because"])
    mark = f"{_MARKS[proof['answer']]} "
    match proof["claim"], proof["answer"]:
        case claim, "not proved":
            named = of if claim == "same" else f"{of}, {claim}"
            return mark, words("proofs.open", of=named, because=because)
        case "same", "proved":
            return mark, words("proofs.same")
        case "same", _:
            return mark, words("proofs.differs"), _payment(proof)
        case "wider", _:
            return mark, words("proofs.wider", of=of), _payment(proof)
        case "narrower", _:
            return mark, words("proofs.narrower", of=of), _payment(proof)
        case "moved", _:
            return mark, words("proofs.moved", of=of)
        case "always met", _:
            return mark, words("proofs.always", of=of)
        case "must", "proved":
            return mark, words("proofs.holds", of=of)
        case "must", _:
            return mark, words("proofs.broken", of=of), _payment(proof)
        case _, "proved":
            return mark, words("proofs.reached", of=of)
        case _ if because:
            return mark, words("proofs.covered", of=of, because=because)
        case _:
            return mark, words("proofs.dead", of=of)


def _payment(proof: JsonObject) -> Html:
    """Show the payment as a test block with its decisions; without a test block, only the
    decisions.
    """
    decided = [
        f"{each['action'] or 'default'} {each['condition'] or ''}".strip()
        for each in proof["decided"]
    ]
    test = proof["test"] or ""
    return element("pre", element("code", test, " → ".join(decided)), class_="rule", tabindex="0")
