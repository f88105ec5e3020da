"""Was every answer true, and does every decision agree with the journal?

    python -m tollkeeper.bench.faults.checker FOLDER

It implements the rule itself (`RULE`) and reads the journal's lines directly, imports nothing of
the engine, and recounts by going through all lines. A window is (t - w, t] of event time over the
records at or before the decision's place, each in its state as of that place.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from tollkeeper.bench.faults.history import (
    NO_ANSWER,
    Attempt,
    History,
    Line,
    Notice,
    Operation,
    read,
)

PAYMENT, UPDATE, EVENT, CHANGE, LABEL = 1, 2, 3, 4, 6
MINUTE = 60_000_000
RULE = """rule gate
  # {mark}
  list blocked: string
  let recent = count(payments by user.id over 1m)
  let addresses = distinct(payments.device.ip_address by user.id over 1m)
  let spent = sum(payments.amount by user.id, currency over 1h)
  let failed = count(payments by user.id over 1h where status == "failed")
  let high = max(payments.amount by device.ip_address, currency over 10m)
  let fraud = count(payments by device.ip_address over 1h where label == "fraud")
  let signs = events.sign_in.recent[user.id]
  condition known when user.id in @blocked then deny
  condition often when recent > {often} and addresses > 1 then challenge
  condition failing when failed > 3 and spent >= 100 and currency == "EUR" then challenge
  condition bad when fraud > 2 and high >= 40 and currency == "EUR" then deny
  condition signed when signs > 5 then challenge
"""
"""The rule that is published repeatedly; `often` differs from version to version."""
EVENT_TYPE = """event sign_in
  field user: string required
  metric recent = count(events by user over 1h)
  monitor busy "Many sign-ins" when recent >= 4
"""
READS = ("recent", "addresses", "spent", "failed", "high", "fraud", "signs")
"""The aggregates, in the order in which a decision stores their values, after the scorecard's."""
_REFUSED = frozenset((429, 503))
_REMOVED_BEFORE = 404
_QUOTED = re.compile(r"(?<=')[^']+(?=')")


class Fault(NamedTuple):
    """A violation, in words; `kind` is one of `KINDS`."""

    kind: str
    words: str


KINDS = (
    "acknowledged and lost",
    "refused and kept",
    "wrong reads",
    "wrong decisions",
    "decided twice",
    "answers that differ",
    "answers that are untrue",
    "erased and kept",
    "notices that never came",
    "notices of nothing",
)


@dataclass
class Findings:
    """How much was checked, and what was found."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def add(self, kind: str, words: str) -> None:
        self.faults.append(Fault(kind, words))

    def of(self, kind: str) -> int:
        return sum(each.kind == kind for each in self.faults)


@dataclass
class Payment:
    """A payment with all its states, each with the place from which it holds.

    `cut_off` are erasures that began at their own place and completed, without an answer, somewhere
    up to `until`: states there no longer name that person.
    """

    place: int
    time: int
    decision: Any
    states: list[tuple[int, Any]]
    labels: list[tuple[int, str | None]] = field(default_factory=list)
    cut_off: str | None = None
    until: float = inf

    def at(self, place: int, gone: Set[str] = frozenset()) -> Any:
        """Return its state at a place, assuming that the unanswered erasures of `gone` had reached
        it before.
        """
        state = [state for since, state in self.states if since <= place][-1]
        return _erase(state) if self.cut_off in gone and self.may_be_gone(place) else state

    def may_be_gone(self, place: int) -> bool:
        return self.cut_off is not None and self.place < place < self.until

    def label_at(self, place: int) -> str | None:
        return ([None] + [label for since, label in self.labels if since <= place])[-1]


class Sign(NamedTuple):
    """A sign-in."""

    place: int
    time: int
    user: str | None


def check(history: History) -> Findings:
    """Return all violations in a history."""
    operations, journal, notices = history
    findings = Findings()
    accounts, known = defaultdict(list), set[str]()
    for line in sorted(journal, key=lambda each: (each.account, each.place)):
        accounts[line.account].append(line)
    for number, lines in accounts.items():
        changes = [each.body["change"] for each in lines if each.kind == CHANGE]
        names = [each["name"] for each in changes if each["type"] == "account_created"]
        of_account = [each for each in operations if each.account in names]
        _check_account(findings, f"account {number}", of_account, lines)
        _check_notices(findings, [each for each in notices if each.account in names], lines)
        known.update(names)
    for account in {each.account for each in operations} - known:
        findings.add("acknowledged and lost", f"the account {account}")
    return findings


def _check_account(
    findings: Findings, account: str, operations: Sequence[Operation], lines: Sequence[Line]
) -> None:
    for kind in (PAYMENT, EVENT):
        for id_, times in Counter(each.id for each in lines if each.kind == kind).items():
            if times > 1:
                findings.add("decided twice", f"{account}: {id_} stands there {times} times")
    for place, times in Counter(each.place for each in lines).items():
        if times > 1:
            findings.add("decided twice", f"{account}: place {place} was given {times} times")
    sent = {each.subject: each.sent for each in operations if each.kind == "payment"}
    events = {each.subject: each.sent for each in operations if each.kind == "event"}
    payments = _payments(lines, sent, _cut_off(operations))
    _check_decisions(findings, account, lines, payments, events)
    index = _index(lines)
    for operation in operations:
        _check_operation(findings, operation, index)
    _check_erasures(findings, operations, lines, index)


# Decisions, recounted.


def _check_decisions(
    findings: Findings,
    account: str,
    lines: Sequence[Line],
    payments: dict[str, Payment],
    events: dict[str, Any],
) -> None:
    signs = []
    for line in lines:
        if line.kind == EVENT:
            user = events[line.id]["user"] if line.id in events else line.body["data"].get("user")
            signs.append(Sign(line.place, line.time, user))
    by_user, by_address, by_sign = defaultdict(list), defaultdict(list), defaultdict(list)
    for payment in payments.values():
        created = payment.states[0][1]
        by_user[created["user"]].append(payment)
        by_address[created["address"]].append(payment)
    for sign in signs:
        by_sign[sign.user].append(sign)
    active = _Active(lines)
    for id_, payment in payments.items():
        if payment.decision is None or "rule" not in payment.decision:
            continue
        own = payment.states[0][1]
        of_user, of_address = by_user[own["user"]], by_address[own["address"]]
        counts = [
            recount(payment, of_user, of_address, by_sign[own["user"]], gone)
            for gone in _subsets(
                {
                    each.cut_off
                    for each in (*of_user, *of_address)
                    if each.cut_off is not None and each.may_be_gone(payment.place)
                }
            )
        ]
        read_values = payment.decision["reads"][-len(READS) :]
        counted = next((each for each in counts if each == read_values), counts[0])
        findings.counts["decisions"] += 1
        if payment.decision.get("lost"):
            findings.add("wrong reads", f"{account}: {id_} at {payment.place} could not read all")
        findings.counts["reads"] += len(READS)
        for name, was, should in zip(READS, read_values, counted, strict=True):
            if was != should:
                words = f"{account}: {id_} at {payment.place} read {name} = {was}, not {should}"
                findings.add("wrong reads", words)
        met, version = payment.decision["rule"].get("condition"), active.version(payment.place)
        if payment.decision["rule"]["version"] != version:
            words = f"{account}: {id_} by version {payment.decision['rule']['version']}"
            findings.add("wrong decisions", f"{words}, not {version}")
        should_meet = _condition(
            dict(zip(READS, counted, strict=True)),
            active.often(payment.place),
            is_known=active.holds(own["user"], payment.place),
        )
        if met != should_meet:
            words = f"{account}: {id_} at {payment.place} met {met}, not {should_meet}"
            findings.add("wrong decisions", words)


def _erased(lines: Iterable[Line]) -> dict[str, list[int]]:
    """Return the places of erasures by person: an unanswered attempt may have been one, too."""
    places = defaultdict(list)
    for line in lines:
        if line.kind == CHANGE and line.body["change"]["type"] == "person_erased":
            places[line.body["change"]["person"]].append(line.place)
    return places


def _cut_off(operations: Iterable[Operation]) -> set[str]:
    """Return the persons whose erasure was requested, with at least one attempt unanswered."""
    return {
        each.subject
        for each in operations
        if each.kind == "erase" and not all(_is_success(each, attempt) for attempt in each.attempts)
    }


def _subsets(persons: Set[str]) -> Iterator[frozenset[str]]:
    """All subsets, the empty one first."""
    for size in range(len(persons) + 1):
        yield from map(frozenset, combinations(sorted(persons), size))


def _erase(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "user": None, "address": None}


def _payments(lines: Sequence[Line], sent: dict[str, Any], cut_off: Set[str]) -> dict[str, Payment]:
    """Return payments as decisions saw them: what an erasure removed from a line was there before.

    An unanswered erasure may have reached a payment without leaving an entry in the journal.
    """
    payments: dict[str, Payment] = {}
    nameless, erased_at = set(), _erased(lines)
    for line in lines:
        if line.kind in (PAYMENT, UPDATE):
            stored = line.body["payment"]
            state = {
                "status": stored["status"],
                "amount": _hundredths(stored["amount"]),
                "user": stored.get("user", {}).get("id"),
                "address": stored.get("device", {}).get("ip_address"),
            }
            if state["user"] is None:
                nameless.add(line.id)
            if line.id in sent:
                as_sent = sent[line.id]
                state["user"], state["address"] = as_sent["user"], as_sent["address"]
            if line.kind == PAYMENT:
                payments.setdefault(
                    line.id, Payment(line.place, line.time, line.outcome, [(line.place, state)])
                )
            elif line.id in payments:
                payments[line.id].states.append((line.place, state))
        elif line.kind == LABEL and line.id in payments:
            payments[line.id].labels.append((line.place, line.body["label"]))
    for id_, payment in payments.items():
        user = payment.states[0][1]["user"] or ""
        for place in [each for each in erased_at[_digest(user)] if each > payment.place][:1]:
            payment.states.append((place, _erase(payment.states[-1][1])))
            payment.until = place
        if user in cut_off and id_ in nameless:
            payment.cut_off = user
    return payments


def recount(
    payment: Payment,
    of_user: Sequence[Payment],
    of_address: Sequence[Payment],
    signs: Sequence[Sign],
    gone: Set[str],
) -> list[int | None]:
    """Return what a decision had to read, in the order of `READS`; amounts in hundredths.

    Assumes that the unanswered erasures of `gone` had reached their payments.
    """
    own, place, time = payment.states[0][1], payment.place, payment.time

    def within(records: Sequence[Payment], span: int, key: str) -> list[Any]:
        found = [
            each for each in records if each.place <= place and time - span < each.time <= time
        ]
        states = [(each.at(place, gone), each) for each in found]
        return [(state, each) for state, each in states if state[key] == own[key]]

    minute, hour = within(of_user, MINUTE, "user"), within(of_user, 60 * MINUTE, "user")
    amounts = [state["amount"] for state, _ in within(of_address, 10 * MINUTE, "address")]
    return [
        len(minute),
        len({state["address"] for state, _ in minute}),
        sum(state["amount"] for state, _ in hour),
        sum(state["status"] == "failed" for state, _ in hour),
        max(amounts),
        sum(
            each.label_at(place) == "fraud"
            for _, each in within(of_address, 60 * MINUTE, "address")
        ),
        sum(each.place <= place and time - 60 * MINUTE < each.time <= time for each in signs),
    ]


def _condition(reads: dict[str, Any], often: int, *, is_known: bool) -> str | None:
    met = (
        ("known", is_known),
        ("often", reads["recent"] > often and reads["addresses"] > 1),
        ("failing", reads["failed"] > 3 and reads["spent"] >= 10_000),
        ("bad", reads["fraud"] > 2 and reads["high"] >= 4_000),
        ("signed", reads["signs"] > 5),
    )
    return next((name for name, is_met in met if is_met), None)


class _Active:
    """Which version was active at a place, and what the list contained."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._versions: list[tuple[int, int]] = []
        self._texts: dict[int, str] = {}
        self._listed: dict[str, list[tuple[int, bool]]] = defaultdict(list)
        for line in lines:
            if line.kind != CHANGE:
                continue
            change = line.body["change"]
            if change["type"] == "version_stored" and change["name"] == "gate":
                self._texts[change["number"]] = change["text"]
            elif change["type"] == "activated" and change["name"] == "gate":
                self._versions.append((line.place, change["number"]))
            elif change["type"] == "entries_changed":
                for value in change["values"]:
                    self._listed[value].append((line.place, change["action"] == "put"))

    def version(self, place: int) -> int:
        return [number for since, number in self._versions if since < place][-1]

    def often(self, place: int) -> int:
        (found,) = re.findall(r"recent > (\d+)", self._texts[self.version(place)])
        return int(found)

    def holds(self, value: str, place: int) -> bool:
        return ([False] + [is_in for since, is_in in self._listed[value] if since < place])[-1]


# Clients' answers, verified.


class _Index(NamedTuple):
    """Where the results of operations are in the journal."""

    payments: dict[str, Line]
    events: dict[str, Line]
    updates: dict[str, list[Any]]
    labels: dict[str, list[Any]]
    versions: dict[str, set[int]]
    listed: dict[tuple[str, str], int]
    erased: dict[str, list[int]]


def _index(lines: Sequence[Line]) -> _Index:
    index = _Index(
        {}, {}, defaultdict(list), defaultdict(list), defaultdict(set), {}, _erased(lines)
    )
    for line in lines:
        if line.kind == PAYMENT:
            index.payments[line.id] = line
        elif line.kind == EVENT:
            index.events[line.id] = line
        elif line.kind == UPDATE:
            index.updates[line.id].append(line.body["payment"])
        elif line.kind == LABEL:
            index.labels[line.id].append(line.body)
        elif line.kind == CHANGE:
            change = line.body["change"]
            if change["type"] == "version_stored" and change["name"] == "gate":
                (mark,) = re.findall(r"# (.*)", change["text"])[:1]
                index.versions[mark].add(change["number"])
            elif change["type"] == "entries_changed":
                for value in change["values"]:
                    index.listed[change["action"], value] = line.place
    return index


def _check_operation(findings: Findings, operation: Operation, index: _Index) -> None:
    acknowledged = [each for each in operation.attempts if _is_success(operation, each)]
    words = f"{operation.kind} of {operation.account}: {operation.subject}"
    for attempt in operation.attempts:
        if not _may_be_told(operation, attempt):
            message = f"{words}: node {attempt.node} answered {attempt.status} {attempt.answer}"
            findings.add("answers that are untrue", message)
    if operation.kind == "look":
        _check_look(findings, operation, acknowledged, words)
        return
    is_kept = _KEPT[operation.kind](operation, index)
    if acknowledged:
        findings.counts["acknowledged"] += 1
        findings.counts[operation.kind] += 1
        if not is_kept:
            findings.add("acknowledged and lost", words)
    elif operation.attempts and all(each.status in _REFUSED for each in operation.attempts):
        findings.counts["refused"] += 1
        if is_kept:
            findings.add("refused and kept", words)
    else:
        findings.counts["unknown"] += 1
    if operation.kind == "payment" and acknowledged:
        _check_answers(findings, operation, acknowledged, index, words)
    if operation.kind == "version" and is_kept:
        # An unanswered attempt may have been executed as well, even later than the next one.
        numbers = index.versions[operation.subject]
        for attempt in acknowledged:
            if attempt.answer["rule"]["version"] not in numbers:
                findings.add("answers that are untrue", f"{words}: it is version {numbers}")


def _check_answers(
    findings: Findings,
    operation: Operation,
    acknowledged: Sequence[Attempt],
    index: _Index,
    words: str,
) -> None:
    first = acknowledged[0].answer
    for each in acknowledged[1:]:
        if each.answer != first:
            findings.add("answers that differ", f"{words}: {first} and {each.answer}")
    line = index.payments.get(operation.subject)
    if line is None:
        return
    answered_rule, stored_rule = first["payment"]["analyses"]["rule"], line.outcome["rule"]
    condition = answered_rule["condition"] and answered_rule["condition"]["id"]
    if (answered_rule["version"], condition) != (
        stored_rule["version"],
        stored_rule.get("condition"),
    ):
        findings.add(
            "answers that are untrue", f"{words}: {answered_rule} was told, {stored_rule} is kept"
        )


def _check_look(
    findings: Findings, operation: Operation, answered: Sequence[Attempt], words: str
) -> None:
    """Check a read of a payment by its own client, after the payment was acknowledged."""
    findings.counts["looks"] += bool(answered)
    expected = operation.sent["status"]
    for each in answered:
        if expected is not None and each.answer["payment"]["status"] != expected:
            message = f"{words}: node {each.node} showed {each.answer['payment']['status']}"
            findings.add("answers that are untrue", f"{message}, not {expected}")


def _is_success(operation: Operation, attempt: Attempt) -> bool:
    """Whether the answer means that it is done; including that nothing is left to remove, if the
    result of an earlier attempt is unknown.
    """
    if operation.kind == "remove" and attempt.status == _REMOVED_BEFORE:
        before = operation.attempts[: operation.attempts.index(attempt)]
        return any(each.status not in _REFUSED for each in before)
    return 200 <= attempt.status < 300


def _may_be_told(operation: Operation, attempt: Attempt) -> bool:
    return (
        attempt.status in (NO_ANSWER, 502)
        or attempt.status in _REFUSED
        or _is_success(operation, attempt)
    )


_KEPT: dict[str, Callable[[Operation, _Index], bool]] = {
    "payment": lambda operation, index: operation.subject in index.payments,
    "event": lambda operation, index: operation.subject in index.events,
    "update": lambda operation, index: any(
        operation.sent["mark"] in [attempt["id"] for attempt in each["transactions"]]
        for each in index.updates[operation.subject]
    ),
    "label": lambda operation, index: any(
        each.get("reason") == operation.sent["reason"] for each in index.labels[operation.subject]
    ),
    "version": lambda operation, index: operation.subject in index.versions,
    "put": lambda operation, index: ("put", operation.subject) in index.listed,
    "remove": lambda operation, index: ("remove", operation.subject) in index.listed,
    "erase": lambda operation, index: _digest(operation.subject) in index.erased,
}


def _check_erasures(
    findings: Findings, operations: Sequence[Operation], lines: Sequence[Line], index: _Index
) -> None:
    """Check that nothing acknowledged before an erasure names the person any more.

    Of several erasures the first counts: what its person does between two need not be covered by
    the second.
    """
    erased = {
        each.subject: index.erased[_digest(each.subject)][0]
        for each in operations
        if each.kind == "erase"
        and any(_is_success(each, attempt) for attempt in each.attempts)
        and _digest(each.subject) in index.erased
    }
    for line in lines:
        for subject in set(_QUOTED.findall(f"{line.body} {line.outcome}")) & erased.keys():
            if line.place < erased[subject]:
                findings.add("erased and kept", f"{subject} of {line.account} at {line.place}")


# Webhook notices.


def owed_notices(lines: Iterable[Line]) -> Counter[tuple[str, str]]:
    """Return how many notices of each kind and subject an account's lines call for."""
    owed: Counter[tuple[str, str]] = Counter()
    for line in lines:
        if line.kind in (PAYMENT, UPDATE):
            owed["payment.decided" if line.kind == PAYMENT else "payment.updated", line.id] += 1
        elif line.kind == LABEL:
            owed["label.created", line.id] += line.body.get("label") is not None
        elif line.kind == CHANGE:
            change = line.body["change"]
            if change["type"] == "activated" and change["name"] == "gate":
                owed["rule.published", str(change["number"])] += 1
        for turn in (line.outcome or {}).get("turns", ()):
            owed["alert.raised", str(turn["key"])] += turn["met"]
    return +owed


def sent_notices(notices: Iterable[Notice]) -> Counter[tuple[str, str]]:
    """Return the same of received notices; repetitions count once."""
    return Counter((each.kind, each.subject) for each in set(notices))


def _check_notices(findings: Findings, notices: Sequence[Notice], lines: Sequence[Line]) -> None:
    owed, sent = owed_notices(lines), sent_notices(notices)
    findings.counts["notices"] += sent.total()
    findings.counts["notices again"] += len(notices) - sent.total()
    for kind, found in (
        ("notices that never came", owed - sent),
        ("notices of nothing", sent - owed),
    ):
        for (notice, subject), times in found.items():
            findings.add(kind, f"{notice} of {subject}, {times} times")


def _digest(person: str) -> str:
    return sha256(person.encode()).hexdigest()


def _hundredths(amount: float) -> int:
    return round(amount * 100)


def main() -> None:
    findings = check(read(Path(sys.argv[1])))
    for name, count in sorted(findings.counts.items()):
        print(f"{name}: {count:,}")
    for kind in KINDS:
        print(f"{kind}: {findings.of(kind)}")
    for fault in findings.faults[:50]:
        print(f"{fault.kind}: {fault.words}")
    sys.exit(bool(findings.faults))


if __name__ == "__main__":
    main()
