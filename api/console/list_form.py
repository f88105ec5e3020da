"""The form that adds a payment's value to a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.parts import choices, field, mask_entity, payment_address
from tollkeeper.api.console.rule_lists import lists_for_kind, read_live_rules
from tollkeeper.api.console.visit import Visit
from tollkeeper.api.html import Html, element

BLOCK_HOURS = {"1h": 1, "6h": 6, "24h": 24, "72h": 72}
"""The choices of hours for which a value may be added with one click."""
_FOR_GOOD = ""
_REASON_LENGTH = 200
_TYPES = {"ip": ("ip", "network")}
"""The list types for kinds of values; all others go into lists of strings."""


async def list_form(here: Visit, id_: str, values: Mapping[str, str], **hidden: str) -> Html:
    """Offer to add one of the payment's `values` to a list that can hold it, until a time. Lists
    that active rules use for it come first; empty without any list.
    """
    if not here.may("lists:write"):
        return Html("")
    words = here.words
    lists = (await here.client.get("/v1/lists"))["lists"]
    rules = await read_live_rules(here) if here.may("rules:read") else {}
    asked = [(by, name) for by in values for name in lists_for_kind(rules, by)]
    held = {(by, each["name"]) for by in values for each in lists if _holds(each, by)}
    pairs = [pair for pair in asked if pair in held]
    others = [pair for pair in sorted(held) if pair not in pairs]
    if not held:
        return Html("")

    def options(some: Iterable[tuple[str, str]]) -> list[Html]:
        return [
            element(
                "option",
                f"{words(f'by.{by}')} {mask_entity(by, values[by])} → {name}",
                value=f"{by}:{name}",
            )
            for by, name in some
        ]

    groups = [
        element("optgroup", *options(some), label=words(f"payment.{title}"))
        for title, some in (("asked_lists", pairs), ("other_lists", others))
        if some
    ]
    spans = [(_FOR_GOOD, words("rule.for_good"))]
    spans += [(span, f"{hours} h") for span, hours in BLOCK_HOURS.items()]
    return element(
        "form",
        *(element("input", type="hidden", name=name, value=said) for name, said in hidden.items()),
        field(words("payment.value_and_list"), element("select", *groups, name="put")),
        field(words("rule.how_long"), choices("span", spans)),
        reason_field(here, words("lists.note"), "note"),
        element("button", words("payment.add"), class_="quiet"),
        method="post",
        action=f"{payment_address(id_)}/list",
        data_kept="",
        class_="line",
    )


def reason_field(here: Visit, label: str, name: str, said: str = "") -> Html:
    """A field for why a list is changed, with what is `said` already: required where another person
    must approve.
    """
    required = "" if here.list_approval else None
    value = said[:_REASON_LENGTH] or None
    length = str(_REASON_LENGTH)
    size = "40" if value else None
    return field(
        label,
        element("input", name=name, maxlength=length, size=size, value=value, required=required),
    )


def _holds(spec: JsonObject, by: str) -> bool:
    """Whether the list holds such values; tables are not offered here."""
    return spec.get("type") in _TYPES.get(by, ("string",))
