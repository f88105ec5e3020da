"""common-expression-language: CEL's Rust implementation, one compiled program."""

from __future__ import annotations

import json

import cel

from tollkeeper.bench.peers import Peer
from tollkeeper.bench.peers.documents import inputs

# Comparing null with a number fails, so there are guards.
_CONDITIONS = (
    "device == null && category == '4900'",
    "cards != null && cards >= 9 && amount != null && amount < 10.0",
    "declines != null && declines > 5 && score != null && score >= 0.9",
    "type == 'verify' && presence == 'card_present'",
    "network in ['jcb', 'discover', 'other'] && amount != null && amount > 4900.0",
    "country != null && !(country in ['BR', 'US', 'FR']) && amount != null && amount > 4500.50",
    "email != null && email.endsWith('.test') && amount != null && amount > 4000.0",
    "status == 'declined' && currency in ['USD', 'EUR'] && score != null && score > 0.95",
    "amount != null && amount * 3.0 - 1.50 > 14000.0 && order != null",
    "(provider != null && provider != 'basic' || user == null) && amount != null && amount < 1.0",
    "bin != null && bin.startsWith('4000') && amount != null && amount >= 1.0 && amount <= 5.0",
    (
        "cards != null && cards >= 3"
        " && (declines != null && declines > 3 || score != null && score >= 0.95)"
    ),
)
_RULE = " : ".join(f"{text} ? {index}" for index, text in enumerate(_CONDITIONS)) + " : -1"


def peer() -> Peer:
    execute = cel.compile(_RULE).execute
    return Peer(
        prepare=cel.Context,
        decide=execute,
        decide_inputs=execute,
        decide_json=lambda body: execute(inputs(json.loads(body))),
    )
