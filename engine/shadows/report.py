"""A shadow's report: how many decisions it would have changed, from what to what, with examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.registry.versions import NOUNS, find_lineage, find_version
from tollkeeper.engine.shadows.record import ShadowOutcome, ShadowRecord, decode

_EXAMPLES = 3


class ShadowedPayment(Struct, frozen=True):
    """A payment that the shadow would have decided differently."""

    payment: str
    decided: ShadowOutcome
    would: ShadowOutcome


class Turn(Struct, frozen=True):
    """How many decisions would go from one action to another, with the newest examples.

    For payments that asked for no recommendation, the conditions are compared instead of actions.
    """

    was: str
    would_be: str
    count: int
    examples: tuple[ShadowedPayment, ...]


class ShadowReport(Struct, frozen=True):
    """`evaluated` includes the `failed` ones; `skipped` were not evaluated."""

    kind: Decider
    name: str
    version: int
    evaluated: int
    failed: int
    skipped: int
    changed: int
    turns: tuple[Turn, ...]


def shadow_report(
    journal: Journal, account: Account, kind: Decider, name: str, number: int | None = None
) -> ShadowReport:
    """The report on a version, by default the present shadow.

    Blocks while it reads; for another thread than the event loop's. Raises `NotFound`.
    """
    if number is None:
        number = find_lineage(account, kind, name).shadow
    if number is None:
        raise NotFound("shadow", f"{NOUNS[kind]} `{name}` has no shadow")
    version = find_version(account, kind, name, number)
    # A payment's event time may be a day before its arrival, and so before the version.
    batches = journal.replay(account.number, since=version.stored_at - DAY, kinds=(Kind.SHADOW,))
    return _count_turns(kind, name, number, (entry for batch in batches for entry in batch))


def _count_turns(kind: Decider, name: str, number: int, entries: Iterable[Entry]) -> ShadowReport:
    evaluated = failed = skipped = 0
    turns: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[ShadowedPayment]] = {}
    for entry in entries:
        shadowed = decode(entry.body)
        if (shadowed.kind, shadowed.name, shadowed.version) != (kind, name, number):
            continue
        evaluated += 1
        skipped += shadowed.skipped
        if shadowed.would is None:
            failed += 1
            continue
        turn = _turn(shadowed, shadowed.would)
        if turn[0] != turn[1]:
            turns[turn] += 1
            found = examples.setdefault(turn, [])
            found.insert(0, ShadowedPayment(entry.id, shadowed.decided, shadowed.would))
            del found[_EXAMPLES:]
    return ShadowReport(
        kind=kind,
        name=name,
        version=number,
        evaluated=evaluated,
        failed=failed,
        skipped=skipped,
        changed=turns.total(),
        turns=tuple(
            Turn(was, would_be, count, tuple(examples[was, would_be]))
            for (was, would_be), count in turns.most_common()
        ),
    )


def _turn(shadowed: ShadowRecord, would: ShadowOutcome) -> tuple[str, str]:
    if would.action is None or shadowed.decided.action is None:
        return shadowed.decided.condition or "no condition", would.condition or "no condition"
    return shadowed.decided.action, would.action
