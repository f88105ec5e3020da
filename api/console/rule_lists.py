"""Find the lists in which active rules look up values, and by which field."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from tollkeeper.api.console.client import segment
from tollkeeper.api.console.visit import Visit

FIELDS = {
    "device": "device.fingerprint.id",
    "ip": "device.ip_address",
    "user": "user.id",
    "email": "user.email",
    "bin": "method.card.bin",
    "merchant": "merchant.id",
}
"""What can be blocked, and its field in rules."""
# Starts only where a name starts, so that the search is linear in the text.
_LOOK_UP = re.compile(r"(?<![a-z_.])([a-z_.]++)[ \t]+in[ \t]+@([a-z0-9_]+)")
_NEGATED = re.compile(rf"\bnot[ \t]+\(?{_LOOK_UP.pattern}")
_NO_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|#.*')
_ITEM = re.compile(r"^[ \t]*(let|condition|use|list|table|must|otherwise|test)\b", re.MULTILINE)
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_DECLARED = re.compile(r"^[ \t]*(?:list|table)[ \t]+([a-z0-9_]+)", re.MULTILINE)
_ACTION = re.compile(r"\bthen\s+([a-z]+)")


async def read_live_rules(here: Visit) -> Mapping[str, str]:
    """Return the texts of the active rules by name."""
    rules = (await here.client.get("/v1/rules"))["rules"]
    live = [each["name"] for each in rules if each["active"] is not None]
    texts = await asyncio.gather(*(here.client.get(f"/v1/rules/{segment(name)}") for name in live))
    return {name: answer["rule"]["text"] for name, answer in zip(live, texts, strict=True)}


def lists_for_kind(rules: Mapping[str, str], by: str) -> tuple[str, ...]:
    """Return the lists in which the rules look up such values."""
    look_ups = [pair for text in rules.values() for pair in _LOOK_UP.findall(text)]
    return tuple(dict.fromkeys(name for field, name in look_ups if field == FIELDS.get(by)))


def rules_with_list(rules: Mapping[str, str], name: str) -> list[str]:
    """Return the names of the rules that declare the list, sorted."""
    return sorted(
        rule for rule, text in rules.items() if name in _DECLARED.findall(_NO_CODE.sub("", text))
    )


def blocking_lists(rules: Mapping[str, str], by: str) -> tuple[str, ...]:
    """Return the lists that have such values challenged or denied: conditions that do so look them up,
    themselves or by a `let`.
    """
    look_ups = [pair for text in rules.values() for pair in _looked_up_to_block(text)]
    return tuple(dict.fromkeys(name for field, name in look_ups if field == FIELDS.get(by)))


def _looked_up_to_block(rule: str) -> list[tuple[str, str]]:
    """Return the field and the list of each look-up by a condition that challenges or denies."""
    code, blocking = _NO_CODE.sub("", rule), list[tuple[str, str]]()
    lets: dict[str, tuple[tuple[str, str], ...]] = {}
    _, *items = _ITEM.split(code)
    for kind, text in zip(items[::2], items[1::2], strict=True):
        name, *names = _NAME.findall(text) or [""]
        look_ups = _LOOK_UP.findall(_NEGATED.sub("", text))
        # Each let once: a chain of lets that each name the next one twice would double with each step.
        look_ups += [pair for each in dict.fromkeys(names) for pair in lets.get(each, ())]
        action = _ACTION.search(text)
        if kind == "let":
            lets[name] = tuple(dict.fromkeys(look_ups))
        elif kind == "condition" and action is not None and action[1] != "allow":
            blocking += look_ups
    return blocking


def kind_of_list(rules: Mapping[str, str], name: str) -> str | None:
    """Return the kind of value that the rules look up in the list; None if there is none, or if
    payments can't be searched by it.
    """
    return next((by for by in FIELDS if name in lists_for_kind(rules, by)), None)
