"""The checker of histories finds what is planted, and knows nothing of the engine that it judges."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.bench.faults import checker, history
from tollkeeper.bench.faults.checker import RULE, Findings, check
from tollkeeper.bench.faults.history import (
    NO_ANSWER,
    Attempt,
    History,
    Line,
    Notice,
    Operation,
    read,
    write,
)

SECOND = 1_000_000
BEGIN = 1_000 * SECOND


def change(place: int, **members: Any) -> Line:
    return Line(place, 1, 4, "1", BEGIN, {"by": "root", "change": members}, None)


def paid(
    place: int, id_: str, user: str | None, reads: list[int], condition: str | None = None
) -> Line:
    """A payment of 50.00 EUR, a second after the one before it, by version 1."""
    person = {} if user is None else {"user": {"id": user}, "device": {"ip_address": f"of-{user}"}}
    stored = {"status": "initiated", "currency": "EUR", "amount": 50.0, **person}
    rule = {"name": "gate", "version": 1, "condition": condition}
    return Line(
        *(place, 1, 1, id_, BEGIN + place * SECOND, {"payment": stored}),
        {"rule": rule, "reads": [7, *reads]},
    )


def asked(kind: str, subject: str, sent: Any, *answers: tuple[int, Any]) -> Operation:
    attempts = [Attempt(n, n, n + 1, status, answer) for n, (status, answer) in enumerate(answers)]
    return Operation(kind, "shop", subject, sent, tuple(attempts))


def answered(condition: str | None = None) -> tuple[int, Any]:
    met = None if condition is None else {"id": condition, "name": None}
    told = {"name": "gate", "version": 1, "condition": met}
    return 201, {"payment": {"status": "initiated", "analyses": {"rule": told}}}


def sound() -> History:
    """A history in which all is as it must be."""
    ana, bob, gus = ({"user": user, "address": f"of-{user}"} for user in ("ana", "bob", "gus"))
    listed = {"type": "entries_changed", "list": "blocked", "values": ["bob"]}
    failed = {
        "status": "failed",
        "currency": "EUR",
        "amount": 50.0,
        "user": {"id": "ana"},
        "device": {"ip_address": "of-ana"},
        "transactions": [{"id": "u1"}],
    }
    journal = [
        change(1, type="account_created", name="shop"),
        change(
            2, type="version_stored", name="gate", number=1, text=RULE.format(mark="v1", often=9)
        ),
        change(3, type="activated", name="gate", number=1),
        paid(4, "p1", "ana", [1, 1, 5000, 0, 5000, 0, 0]),
        paid(5, "p2", "ana", [2, 1, 10000, 0, 5000, 0, 0]),
        Line(6, 1, 2, "p1", BEGIN + 4 * SECOND, {"payment": failed}, None),
        Line(7, 1, 6, "p2", BEGIN, {"source": "review", "label": "fraud", "reason": "l1"}, None),
        Line(
            *(8, 1, 3, "e1", BEGIN + 8 * SECOND, {"type": "sign_in", "data": {"user": "ana"}}),
            {"turns": [{"monitor": "busy", "key": ["ana"], "met": True}]},
        ),
        paid(9, "p3", "ana", [3, 1, 15000, 1, 5000, 1, 1]),
        change(10, action="put", **listed),
        paid(11, "p4", "bob", [1, 1, 5000, 0, 5000, 0, 0], "known"),
        change(12, action="remove", **listed),
        paid(13, "p5", None, [1, 1, 5000, 0, 5000, 0, 0]),
        change(14, type="person_erased", person=sha256(b"gus").hexdigest()),
        paid(15, "p6", "gus", [1, 1, 5000, 0, 5000, 0, 0]),
        # An attempt to erase that nobody heard of ends late.
        change(16, type="person_erased", person=sha256(b"gus").hexdigest()),
    ]
    operations = [
        asked("version", "v1", {}, (201, {"rule": {"version": 1}})),
        asked("payment", "p1", ana, answered()),
        asked("payment", "p2", ana, (503, None), (NO_ANSWER, ""), answered(), answered()),
        asked("update", "p1", {"mark": "u1"}, (200, {})),
        asked("label", "p2", {"reason": "l1"}, (200, {})),
        asked("event", "e1", {"user": "ana"}, (201, {})),
        asked("payment", "p3", ana, answered()),
        asked("put", "bob", {}, (200, {})),
        asked("payment", "p4", bob, answered("known")),
        asked("remove", "bob", {}, (NO_ANSWER, ""), (404, {})),
        asked("payment", "p5", gus, answered()),
        asked("erase", "gus", {}, (200, {})),
        asked("payment", "p6", gus, answered()),
        asked("look", "p1", {"status": "failed"}, (200, {"payment": {"status": "failed"}})),
        asked("payment", "p7", ana, (503, None), (503, None)),
        asked("payment", "p8", ana, (NO_ANSWER, "")),
    ]
    kinds = {1: "payment.decided", 2: "payment.updated", 6: "label.created"}
    sent = [(kinds[each.kind], each.id) for each in journal if each.kind in kinds]
    sent += [("rule.published", "1"), ("alert.raised", "['ana']"), ("payment.decided", "p1")]
    notices = [Notice("shop", *each, f"delivery of {each}") for each in sent]
    return History(operations, journal, notices)


def found(told: History) -> set[str]:
    return {fault.kind for fault in check(told).faults}


def with_journal(told: History, lines: list[Line]) -> History:
    return told._replace(journal=lines)


def with_notices(change: Callable[[list[Notice]], list[Notice]]) -> Callable[[History], History]:
    return lambda told: told._replace(notices=change(list(told.notices)))


def without(place: int) -> Callable[[History], History]:
    return lambda told: with_journal(told, [each for each in told.journal if each.place != place])


def with_line(*lines: Line) -> Callable[[History], History]:
    return lambda told: with_journal(told, [*told.journal, *lines])


def decided_otherwise(place: int, **changed: Any) -> Callable[[History], History]:
    def plant(told: History) -> History:
        lines = [
            replace(each, outcome={**each.outcome, **changed}) if each.place == place else each
            for each in told.journal
        ]
        return with_journal(told, lines)

    return plant


def told_otherwise(
    kind: str, subject: str, *answers: tuple[int, Any]
) -> Callable[[History], History]:
    def plant(told: History) -> History:
        operations = [
            asked(kind, subject, each.sent, *answers)
            if (each.kind, each.subject) == (kind, subject)
            else each
            for each in told.operations
        ]
        return told._replace(operations=operations)

    return plant


VERSION = {"type": "version_stored", "name": "gate", "number": 2}
PLANTED: dict[str, tuple[str, Callable[[History], History]]] = {
    "a payment that was acknowledged is gone": ("acknowledged and lost", without(15)),
    "an update is gone": ("acknowledged and lost", without(6)),
    "a label is gone": ("acknowledged and lost", without(7)),
    "an event is gone": ("acknowledged and lost", without(8)),
    "a list's entry is gone": ("acknowledged and lost", without(10)),
    "an erasure is gone": ("acknowledged and lost", lambda told: without(16)(without(14)(told))),
    "what was refused by all is kept": (
        "refused and kept",
        with_line(paid(17, "p7", "ana", [4, 1, 20000, 1, 5000, 1, 1])),
    ),
    "a node that ignores its epoch counts what another has not": (
        "wrong reads",
        decided_otherwise(9, reads=[7, 2, 1, 10000, 1, 5000, 1, 1]),
    ),
    "an update is counted twice": (
        "wrong reads",
        decided_otherwise(9, reads=[7, 3, 1, 15000, 2, 5000, 1, 1]),
    ),
    "a label is not counted": (
        "wrong reads",
        decided_otherwise(9, reads=[7, 3, 1, 15000, 1, 5000, 0, 1]),
    ),
    "an event is not counted": (
        "wrong reads",
        decided_otherwise(9, reads=[7, 3, 1, 15000, 1, 5000, 1, 0]),
    ),
    "a payment that was erased is still counted": (
        "wrong reads",
        decided_otherwise(15, reads=[7, 2, 1, 10000, 0, 5000, 0, 0]),
    ),
    "a value could not be read": (
        "wrong reads",
        decided_otherwise(9, lost=[1]),
    ),
    "a list that is not up to date decides": (
        "wrong decisions",
        decided_otherwise(11, rule={"name": "gate", "version": 1}),
    ),
    "a version decides that was replaced": (
        "wrong decisions",
        with_line(
            replace(change(3, **VERSION, text=RULE.format(mark="v2", often=9)), place=-2),
            replace(change(3, type="activated", name="gate", number=2), place=8),
        ),
    ),
    "two owners append a payment": (
        "decided twice",
        with_line(paid(17, "p6", "gus", [2, 1, 10000, 0, 5000, 0, 0])),
    ),
    "two owners give one place": (
        "decided twice",
        with_line(replace(paid(16, "p9", "ivo", [1, 1, 5000, 0, 5000, 0, 0]), place=15)),
    ),
    "one key gets two answers": (
        "answers that differ",
        told_otherwise("payment", "p4", answered("known"), answered()),
    ),
    "an answer is not what is kept": (
        "answers that are untrue",
        told_otherwise("payment", "p4", answered()),
    ),
    "a node does not know what another has acknowledged": (
        "answers that are untrue",
        told_otherwise("update", "p1", (404, {})),
    ),
    "a node shows what was before": (
        "answers that are untrue",
        told_otherwise("look", "p1", (200, {"payment": {"status": "initiated"}})),
    ),
    "a node says that an id is taken": (
        "answers that are untrue",
        told_otherwise("payment", "p2", (NO_ANSWER, ""), (422, {})),
    ),
    "an erased person's name is still there": (
        "erased and kept",
        lambda told: with_journal(
            told,
            [
                replace(e, body=paid(13, "p5", "gus", []).body) if e.place == 13 else e
                for e in told.journal
            ],
        ),
    ),
    "an update is told to nobody": (
        "notices that never came",
        with_notices(lambda sent: [each for each in sent if each.kind != "payment.updated"]),
    ),
    "an alert is told to nobody": (
        "notices that never came",
        with_notices(lambda sent: [each for each in sent if each.kind != "alert.raised"]),
    ),
    "a decision is told under two ids": (
        "notices of nothing",
        with_notices(lambda sent: [*sent, replace(sent[0], delivery="another")]),
    ),
}


def test_nothing_is_found_in_a_sound_history() -> None:
    findings = check(sound())
    assert findings == Findings(findings.counts, [])
    assert {name: findings.counts[name] for name in ("acknowledged", "refused", "unknown")} == {
        "acknowledged": 13,
        "refused": 1,
        "unknown": 1,
    }
    assert (findings.counts["decisions"], findings.counts["reads"]) == (6, 42)
    assert (findings.counts["notices"], findings.counts["notices again"]) == (10, 1)


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    kind, plant = PLANTED[fault]
    assert kind in found(plant(sound()))


def cut_off(reads: list[int]) -> History:
    """An erasure that was asked for was not told to be done; a payment came to the same address later."""
    told = sound()
    first = paid(17, "q1", None, [1, 1, 5000, 0, 5000, 0, 0])
    large = {**first.body["payment"], "amount": 90.0}
    later = paid(18, "q2", "ivo", reads)
    later.body["payment"]["device"]["ip_address"] = "of-eva"
    operations = [
        asked("payment", "q1", {"user": "eva", "address": "of-eva"}, answered()),
        asked("erase", "eva", {}, (NO_ANSWER, ""), (503, None)),
        asked("payment", "q2", {"user": "ivo", "address": "of-eva"}, answered()),
    ]
    sent = [Notice("shop", "payment.decided", id_, f"of {id_}") for id_ in ("q1", "q2")]
    first = replace(
        first,
        body={"payment": large},
        outcome={**first.outcome, "reads": [7, 1, 1, 9000, 0, 9000, 0, 0]},
    )
    return History(
        [*told.operations, *operations], [*told.journal, first, later], [*told.notices, *sent]
    )


@pytest.mark.parametrize("high", [5000, 9000])
def test_an_erasure_that_was_cut_off_may_have_come_to_a_payment_or_not(high: int) -> None:
    assert found(cut_off([1, 1, 5000, 0, high, 0, 0])) == set()


def test_what_neither_way_of_an_erasure_explains_is_found() -> None:
    assert found(cut_off([1, 1, 5000, 0, 7000, 0, 0])) == {"wrong reads"}


def test_a_history_is_kept_and_read_again(tmp_path: Path) -> None:
    write(tmp_path, sound())
    assert read(tmp_path) == sound()


@pytest.mark.parametrize("module", [checker, history])
def test_the_checker_imports_nothing_of_the_engine(module: Any) -> None:
    tree = ast.parse(Path(module.__file__).read_text())
    modules = {each.module or "" for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    modules |= {
        name.name for each in ast.walk(tree) if isinstance(each, ast.Import) for name in each.names
    }
    own = {each for each in modules if each.startswith("tollkeeper")}
    assert own <= {history.__name__}
    assert {each.partition(".")[0] for each in modules - own} <= sys.stdlib_module_names
