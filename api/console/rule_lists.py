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
_ASKED = re.compile(r"(?<![a-z_.])([a-z_.]++)[ \t]+in[ \t]+@([a-z0-9_]+)")


async def read_live_rules(here: Visit) -> Mapping[str, str]:
    """Return the texts of the active rules by name."""
    rules = (await here.client.get("/v1/rules"))["rules"]
    live = [each["name"] for each in rules if each["active"] is not None]
    texts = await asyncio.gather(*(here.client.get(f"/v1/rules/{segment(name)}") for name in live))
    return {name: answer["rule"]["text"] for name, answer in zip(live, texts, strict=True)}


def lists_for_kind(rules: Mapping[str, str], by: str) -> tuple[str, ...]:
    """Return the lists in which the rules look up such values."""
    asked = [pair for text in rules.values() for pair in _ASKED.findall(text)]
    return tuple(dict.fromkeys(name for field, name in asked if field == FIELDS.get(by)))


def kind_of_list(rules: Mapping[str, str], name: str) -> str | None:
    """Return the kind of value that the rules look up in the list; None if there is none, or if
    payments can't be searched by it.
    """
    return next((by for by in FIELDS if name in lists_for_kind(rules, by)), None)
