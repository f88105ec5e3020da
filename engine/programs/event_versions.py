"""Contract changes of an event type, planned: what a new version breaks, and from when it applies.

A version is compatible when every event that its predecessor took still fits, and everything that
is read of them is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.programs.event_contract import Contract
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account, Lineage, Version
from tollkeeper.engine.registry.versions import version_in_force
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import BUILT_IN_EVENT


def breaks(old: Contract, new: Contract) -> list[Violation]:
    """What `new` breaks for those who send or read events of `old`; empty when it is compatible."""
    before = {each.name: each for each in old.fields}
    after = {each.name: each for each in new.fields}
    found = [
        Violation(f"fields.{name}", "conflict", f"`{name}` is removed")
        for name in before
        if name not in after
    ]
    for name, field in after.items():
        found.extend(_breaks_of(before.get(name), field))
    return found


def _breaks_of(old: p.EventField | None, new: p.EventField) -> Iterator[Violation]:
    place = f"fields.{new.name}"
    if new.required and (old is None or not old.required):
        yield Violation(place, "conflict", f"`{new.name}` is newly required")
    if old is None:
        return
    if type(old.type) is not type(new.type):
        yield Violation(place, "conflict", f"`{new.name}` has another type")
    elif isinstance(old.type, t.String) and isinstance(new.type, t.String):
        if old.type.choices is None and new.type.choices is not None:
            yield Violation(place, "conflict", f"`{new.name}` is now a choice")
        else:
            left = set(old.type.choices or ()) - set(new.type.choices or old.type.choices or ())
            for choice in sorted(left):
                yield Violation(place, "conflict", f"`{new.name}` has no choice `{choice}` more")


@dataclass(frozen=True, slots=True)
class EventVersionPlan:
    """How a version is published: whether it may break the contract, and from when (µs) it applies.

    None means at once.
    """

    breaking: bool = False
    applies_from: int | None = None


AT_ONCE = EventVersionPlan()


def applies_from(
    account: Account, version: Version, planned: EventVersionPlan, now: int
) -> int | None:
    """From when (µs) a version that is to be published applies; None is at once.

    Raises `Invalid` for a plan of anything but an event type, for a date in the past, for a version
    that breaks what is published without being planned as such, and for one of the type `payment`
    that reads what can't be read of a payment once it is counted.
    """
    if version.kind != "event":
        if planned != AT_ONCE:
            message = "only a version of an event type is planned"
            raise Invalid.at("applies_from", "invalid_value", message)
        return None
    _check_payment_type(version)
    at = planned.applies_from
    if at is not None and at < now:
        message = f"`applies_from` must not be in the past, it is {show_instant(now)}"
        raise Invalid.at("applies_from", "out_of_range", message)
    before = version_in_force(account.files["event", version.name], now if at is None else at)
    if before is None or before.number == version.number:
        return at
    broken = breaks(contract_of(before), contract_of(version))
    if broken and not planned.breaking:
        message = "this breaks the contract: publish it as breaking, with a date"
        raise Invalid([*broken, Violation("breaking", "missing", message)])
    if broken and at is None:
        message = "a breaking version needs the date from which it applies"
        raise Invalid([*broken, Violation("applies_from", "missing", message)])
    return at


def _check_payment_type(version: Version) -> None:
    if version.name != BUILT_IN_EVENT:
        return
    program = decode_program(version.program)
    assert isinstance(program, p.EventType)
    if any(each.over is None for each in program.histories):
        message = "`age`, `interval`, `since` and `streak` can't be read in the type `payment`"
        raise Invalid.at("version", "invalid_value", message)


def contract_of(version: Version) -> Contract:
    """What a version of an event type says of its events' data; the same object each time."""
    return _contract(version.program)


# Series find a contract by its identity: equal ones made anew would fill their memory.
@lru_cache(64)
def _contract(encoded: bytes) -> Contract:
    program = decode_program(encoded)
    assert isinstance(program, p.EventType)
    return Contract.of(program)


def live_versions(lineage: Lineage) -> list[Version]:
    """The versions that an event can still meet, by their numbers.

    Those are left out that ended before every event which can arrive: no earlier than the newest
    version was stored, and at most `LATE` behind that.
    """
    if not lineage.activations:
        return []
    floor = max(version.stored_at for version in lineage.versions) - LATE
    steps = sorted({floor, *(each.applies_from for each in lineage.activations)})
    met = {
        v.number: v for step in steps if step >= floor and (v := version_in_force(lineage, step))
    }
    return [met[number] for number in sorted(met)]
