"""A shadow's report: how many decisions it would have changed, from what to what, with examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import cast

from msgspec import Struct

from tollkeeper.engine.instants import MINUTE, show_instant
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.state import Account, Version
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.registry.versions import NOUNS, find_lineage, find_version
from tollkeeper.engine.shadows.record import ShadowOutcome, ShadowRecord, decode

MOST_READ = 50_000
"""How many shadow records a report reads; more would tell hardly more."""
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
    """`evaluated` includes the `failed` ones; `skipped` were not evaluated.

    A report counts the newest ones: `since` (RFC 3339) is when the first one counted was recorded,
    None where all are counted.
    """

    kind: Decider
    name: str
    version: int
    evaluated: int
    failed: int
    skipped: int
    changed: int
    turns: tuple[Turn, ...]
    since: str | None


def shadow_report(
    journal: Journal, account: Account, kind: Decider, name: str, number: int | None = None
) -> ShadowReport:
    """The report on a version, by default the present shadow.

    Blocks while it reads; for another thread than the event loop's. Raises `NotFound`.
    """
    lineage = find_lineage(account, kind, name)
    if number is None:
        number = lineage.shadow
    if number is None:
        raise NotFound("shadow", f"{NOUNS[kind]} `{name}` has no shadow")
    version = find_version(account, kind, name, number)
    # What waited when the shadow ended was recorded soon after.
    ended = lineage.ended_shadows.get(number, 0) + MINUTE
    before = None if number == lineage.shadow else ended
    entries = journal.replay_back(account.number, Kind.SHADOW, before=before)
    return _count_turns(version, entries)


def _count_turns(version: Version, newest_first: Iterator[Entry]) -> ShadowReport:
    evaluated = failed = skipped = 0
    since, oldest = None, 0
    trial = (version.kind, version.name, version.number)
    turns: Counter[tuple[str, str]] = Counter()
    examples: defaultdict[tuple[str, str], list[ShadowedPayment]] = defaultdict(list)
    for read, entry in enumerate(newest_first):
        if entry.arrived < version.stored_at:
            break
        if read == MOST_READ:
            since = show_instant(oldest)
            break
        oldest = entry.arrived
        shadowed = decode(entry.body)
        if (shadowed.kind, shadowed.name, shadowed.version) != trial:
            continue
        evaluated += 1
        skipped += shadowed.skipped
        if shadowed.would is None:
            failed += 1
            continue
        turn = _turn(shadowed, shadowed.would)
        if turn[0] != turn[1]:
            turns[turn] += 1
            if len(examples[turn]) < _EXAMPLES:
                example = ShadowedPayment(entry.id, shadowed.decided, shadowed.would)
                examples[turn].append(example)
    return ShadowReport(
        kind=cast("Decider", version.kind),
        name=version.name,
        version=version.number,
        evaluated=evaluated,
        failed=failed,
        skipped=skipped,
        changed=turns.total(),
        turns=tuple(
            Turn(was, would_be, count, tuple(examples[was, would_be]))
            for (was, would_be), count in turns.most_common()
        ),
        since=since,
    )


def _turn(shadowed: ShadowRecord, would: ShadowOutcome) -> tuple[str, str]:
    if would.action is None or shadowed.decided.action is None:
        return shadowed.decided.condition or "no condition", would.condition or "no condition"
    return shadowed.decided.action, would.action
