"""zen-engine: one compiled expression, given JSON text or a dict."""

from __future__ import annotations

import json

import zen

from tollkeeper.bench.peers import Peer
from tollkeeper.bench.peers.documents import PATHS

# Comparing null with a number fails, so there are guards; `??` gives text functions a text.
_CONDITIONS = (
    "{device} == null and {category} == '4900'",
    "{cards} != null and {cards} >= 9 and {amount} != null and {amount} < 10",
    "{declines} != null and {declines} > 5 and {score} != null and {score} >= 0.9",
    "{type} == 'verify' and {presence} == 'card_present'",
    "{network} in ['jcb', 'discover', 'other'] and {amount} != null and {amount} > 4900",
    (
        "{country} != null and {country} not in ['BR', 'US', 'FR']"
        " and {amount} != null and {amount} > 4500.50"
    ),
    "endsWith({email} ?? '', '.test') and {amount} != null and {amount} > 4000",
    "{status} == 'declined' and {currency} in ['USD', 'EUR'] and {score} != null and {score} > 0.95",
    "{amount} != null and {amount} * 3 - 1.50 > 14000 and {order} != null",
    (
        "({provider} != null and {provider} != 'basic' or {user} == null)"
        " and {amount} != null and {amount} < 1"
    ),
    "startsWith({bin} ?? '', '4000') and {amount} != null and {amount} in [1..5]",
    (
        "{cards} != null and {cards} >= 3"
        " and ({declines} != null and {declines} > 3 or {score} != null and {score} >= 0.95)"
    ),
)
_RULE = " : ".join(f"{text} ? {index}" for index, text in enumerate(_CONDITIONS)) + " : -1"


def peer() -> Peer:
    flat = zen.compile_expression(_RULE.format_map({name: name for name in PATHS})).evaluate
    nested = zen.compile_expression(_RULE.format_map(PATHS)).evaluate
    return Peer(
        prepare=json.dumps,
        decide=lambda text: int(flat(text)),
        decide_inputs=lambda inputs: int(flat(inputs)),
        decide_json=lambda body: int(nested(body.decode())),
    )
