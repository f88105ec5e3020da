"""All questions about a rule, or about two versions of one, in the order in which the proofs are
reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from tollkeeper.engine.offline.prove.as_test import counterexample_test
from tollkeeper.engine.offline.prove.questions import (
    DEFAULT_THRESHOLDS,
    ProofBasis,
    ProofVerdict,
    compare_programs,
    keep_promise,
    meet_always,
    move,
    reach,
)
from tollkeeper.engine.offline.prove.worker import Worker
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar import program as p

ProofClaim: TypeAlias = Literal[
    "reached", "always met", "must", "same", "wider", "narrower", "moved"
]
_KILLED = ProofVerdict("not proved", ("the solver took too long and was ended",))


@dataclass(frozen=True, slots=True)
class Proof:
    """A claim about a rule, and the verdict on it.

    `of` is the condition, the promise's title or the rule's name. `test` is the verdict's payment
    as a test block; None if a test can't express it.
    """

    file: str
    claim: ProofClaim
    of: str
    verdict: ProofVerdict
    test: str | None = None

    @property
    def payment(self) -> str | None:
        """The verdict's payment on one line: as in a test block, else as JSON."""
        if self.verdict.witness is None:
            return None
        if self.test is not None:
            given = " ".join(self.test.split()).partition(" given ")[2]
            return given.partition(" expect ")[0] or "any payment"
        return msgspec.json.encode(self.verdict.witness.facts.payment).decode()


def next_step(proof: Proof) -> str:
    """Return what to do about a claim that is not proved."""
    tested = "a test of each case that matters"
    if proof.verdict.needs_work:
        return f"give the solver more time, as `toll prove --seconds 30`, or write {tested}"
    return f"no time proves it: say it in other words, or write {tested}"


def prove_rule(
    worker: Worker, file: str, rule: p.Rule, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> Iterator[Proof]:
    """Prove for each condition whether it can be reached, then for each `must` whether it holds."""
    for index, condition in enumerate(rule.conditions):
        verdict = worker.ask(reach, rule, index) or _KILLED
        yield _proof(file, "reached", condition.name, verdict, rule)
        always = worker.ask(meet_always, rule, index)
        if always is not None and always.answer == "proved" and verdict.answer == "proved":
            yield Proof(file, "always met", condition.name, always)
    for promise in rule.promises:
        yield prove_promise(worker, file, rule, promise, thresholds)


def prove_promise(
    worker: Worker,
    file: str,
    rule: p.Rule,
    promise: p.Promise,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Proof:
    """Prove whether one `must` of the rule holds, including the actions that the thresholds give."""
    verdict = worker.ask(keep_promise, rule, promise, thresholds) or _KILLED
    return _proof(file, "must", promise.title or "must", verdict, rule)


def compare_rules(
    worker: Worker,
    file: str,
    old: p.Rule,
    new: p.Rule,
    by: ProofBasis = "condition",
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Iterator[Proof]:
    """Prove whether both rules decide alike; if they don't, how each condition of both has changed."""
    verdict = worker.ask(compare_programs, old, new, by, thresholds) or _KILLED
    yield _proof(file, "same", new.name, verdict, new)
    if verdict.answer == "proved":
        return
    places = {each.name: index for index, each in enumerate(old.conditions)}
    kept = [each.name for each in new.conditions if each.name in places]
    former = sorted(kept, key=places.__getitem__)
    for name in kept:
        for direction in ("wider", "narrower"):
            changed = worker.ask(move, old, new, name, direction) or _KILLED
            if changed.answer != "refuted":
                yield _proof(file, direction, name, changed, new)
        if kept.index(name) != former.index(name):
            yield Proof(file, "moved", name, ProofVerdict("proved"))


def _proof(file: str, claim: ProofClaim, of: str, verdict: ProofVerdict, rule: p.Rule) -> Proof:
    test = None
    if verdict.witness is not None:
        test = counterexample_test(
            rule, verdict.witness, verdict.replayed[-1] if verdict.replayed else None
        )
    return Proof(file, claim, of, verdict, test)
