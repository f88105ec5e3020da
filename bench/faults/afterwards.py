"""What is read once no fault is active any more: the journal, the notices, explanations of
decisions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Any

import httpx
import psycopg

from tollkeeper.bench.faults.checker import READS, Findings, owed_notices, sent_notices
from tollkeeper.bench.faults.clients import World
from tollkeeper.bench.faults.cluster import SCHEMAS
from tollkeeper.bench.faults.history import Line, Notice

EXPLAINED = 60
_ANSWER_S = 60
_JOURNAL = " UNION ALL ".join(
    "SELECT place, account, kind, id, time, convert_from(body, 'UTF8')::json,"
    f" convert_from(outcome, 'UTF8')::json FROM {schema}.journal WHERE kind IN (1, 2, 3, 4, 6)"
    for schema in SCHEMAS
)


def read_journal(connection: psycopg.Connection[Any]) -> list[Line]:
    """Return all lines of all shards."""
    return [Line(*row) for row in connection.execute(_JOURNAL).fetchall()]


def wait_for_notices(journal: Sequence[Line], notices: Sequence[Notice], patience_s: float) -> None:
    """Wait until all notices that follow from the journal have been sent, or until the time is up."""
    deadline, owed = time.monotonic() + patience_s, owed_notices(journal).total()
    while sent_notices(tuple(notices)).total() < owed and time.monotonic() < deadline:
        time.sleep(0.5)


def explain(world: World, journal: Sequence[Line], findings: Findings, random: Random) -> None:
    """Request explanations from the nodes: each must repeat its decision, unless its person was
    erased, and show the values that were read.
    """
    payments = {each.id: each for each in journal if each.kind == 1}
    paid = [each for each in world.operations if each.kind == "payment"]
    operations = [each for each in paid if each.subject in payments]
    for operation in random.sample(operations, min(EXPLAINED, len(operations))):
        url = random.choice(world.urls)
        headers = {"authorization": f"Bearer {world.keys[operation.account]}"}
        path = f"{url}/v1/payments/{operation.subject}/explanation"
        try:
            answer = httpx.get(path, headers=headers, timeout=_ANSWER_S)
        except httpx.TransportError as error:
            findings.add("nodes that stay away", f"explanation: {type(error).__name__} of {url}")
            continue
        if answer.status_code != 200:
            findings.add("answers that are untrue", f"explanation: {answer.status_code}")
            continue
        findings.counts["explained"] += 1
        explanation = answer.json()["explanation"]
        values = [each["value"] for each in explanation["rule"]["histories"]]
        line = payments[operation.subject]
        reads = line.outcome["reads"][-len(READS) :]
        # Too little data of an erased person is left to repeat a decision.
        is_erased = "user" not in line.body["payment"]
        if not (explanation["repeated"] or is_erased) or [
            shown(each) for each in values
        ] != values_of(reads):
            words = f"explanation of {operation.subject}: {values}, {reads} is kept"
            findings.add("answers that are untrue", words)


def shown(value: str) -> float:
    return round(float(value), 2)


def values_of(stored_values: Sequence[Any]) -> list[float]:
    """Return a decision's values, amounts converted from hundredths."""
    amounts = ("spent", "high")
    return [
        each / 100 if name in amounts else float(each)
        for name, each in zip(READS, stored_values, strict=True)
    ]
