"""Shadows: the decisions of a version on trial, recorded beside the actual ones and never applied.

A shadow is evaluated in another thread, after the decision is on disk, from immutable facts and
values: it can affect neither the decision nor the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action, Decision
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shadow_queue import QueuedShadow

_AT_ONCE = 64
"""How many shadows are evaluated in one call of a thread."""
DRAIN_S = 5.0
"""How long the end of a service waits for queued shadows."""


class ShadowOutcome(Struct, frozen=True, omit_defaults=True):
    """The action of a decision, the condition that was met, and the score in hundredths."""

    action: Action | None = None
    condition: str | None = None
    score: int | None = None


class ShadowRecord(Struct, frozen=True, omit_defaults=True):
    """The body of an entry of kind `SHADOW`; its id is the payment's.

    `would` is None when the shadow failed. `skipped` counts the payments since the last entry that
    were not evaluated, because too many waited.
    """

    kind: Decider
    name: str
    version: int
    decided: ShadowOutcome
    would: ShadowOutcome | None
    skipped: int = 0


encode_shadow = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(ShadowRecord).decode


async def record_shadows(engine: Engine) -> None:
    """Evaluate and record queued shadows; runs until cancelled."""
    queue = engine.shadows
    while True:
        await queue.filled.wait()
        batch = queue.take(_AT_ONCE)
        outcomes = await asyncio.to_thread(_evaluate_all, batch)
        writes = []
        for item, would in zip(batch, outcomes, strict=True):
            sequence = await engine.windows.take_sequence()
            skipped = engine.shadows.skipped.pop(item.trial, 0)
            try:
                entry = _entry(engine, sequence, item, would, skipped)
                writes.append((item, skipped, engine.journal.append(entry)))
            except JournalError as error:
                _lose(engine, item, skipped, error)
        for item, skipped, write in writes:
            try:
                await write
            except JournalError as error:
                _lose(engine, item, skipped, error)
        queue.unfinished -= len(batch)


async def drain(engine: Engine) -> None:
    """Give queued shadows a moment to be recorded; the rest is lost."""
    deadline = asyncio.get_running_loop().time() + DRAIN_S
    while engine.shadows.unfinished and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)


async def shadows_of(journal: Journal, account: int, payment_id: str) -> list[ShadowRecord]:
    """What each shadow would have decided about a payment, oldest first; none of an unknown one."""
    entries = await journal.of_record(account, Kind.SHADOW, payment_id)
    return [decode(entry.body) for entry in entries]


def _evaluate_all(batch: Sequence[QueuedShadow]) -> list[Decision | None]:
    return [_evaluate(item) for item in batch]


def _evaluate(item: QueuedShadow) -> Decision | None:
    try:
        return item.evaluate()
    except Exception as fault:
        _, kind, name, version = item.trial
        get_logger().error(
            "shadow_failed", kind=kind, name=name, version=version, fault=type(fault).__name__
        )
        return None


def _entry(
    engine: Engine, sequence: int, item: QueuedShadow, would: Decision | None, skipped: int
) -> Entry:
    account, kind, name, version = item.trial
    body = ShadowRecord(
        kind=kind,
        name=name,
        version=version,
        decided=_outcome(item.decided),
        would=None if would is None else _outcome(would),
        skipped=skipped,
    )
    return Entry(
        sequence=sequence,
        account=account,
        kind=Kind.SHADOW,
        id=item.payment,
        arrived=engine.arrivals.put_in_order(engine.clock()),
        time=item.time,
        body=encode_shadow(body),
    )


def _lose(engine: Engine, item: QueuedShadow, skipped: int, error: JournalError) -> None:
    """Count an evaluation that was not recorded, and the skipped ones that its entry would have held."""
    engine.shadows.skip(item)
    engine.shadows.skipped[item.trial] += skipped
    get_logger().warning("shadow_not_recorded", error=str(error))


def _outcome(decision: Decision) -> ShadowOutcome:
    condition = None if decision.rule is None else decision.rule.condition
    return ShadowOutcome(decision.action, condition, decision.score)
