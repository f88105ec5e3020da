"""What is asked of rules: which conditions can be met, what must hold, whether two decide alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import z3

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.prove.encode import Encoder, Program
from tollkeeper.engine.offline.prove.payment import Source
from tollkeeper.engine.offline.prove.replay import Replayed, replay
from tollkeeper.engine.offline.prove.search import NotProvedError, find
from tollkeeper.engine.offline.prove.terms import Formula, Term, UnsayableError, all_of
from tollkeeper.engine.offline.prove.witness import Witness
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.names import SCORE

SECONDS = 2.0
"""How long one question may take."""

Answer: TypeAlias = Literal["proved", "refuted", "not proved"]
Subject: TypeAlias = Literal["met", "reached", "not always met", "same", "wider", "narrower"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one question.

    `subject` is what was asked, `of` the condition or the promise that it was asked of. `witness`
    is the payment that shows it, replayed as `replayed`; `because` are the conditions that it
    rests on, or says why nothing was proved.
    """

    subject: Subject
    of: str
    answer: Answer
    because: tuple[str, ...] = ()
    witness: Witness | None = None
    replayed: tuple[Replayed, ...] = ()


class _Rule:
    """A rule's conditions as formulas, each with why it has none."""

    def __init__(self, encoder: Encoder, rule: p.Rule) -> None:
        self.rule = rule
        self.program = Program(encoder, rule.lets)
        self.terms: list[Term | None] = []
        self.reasons: list[str] = []
        for condition in rule.conditions:
            try:
                self.terms.append(self.program.term(condition.when))
                self.reasons.append("")
            except (UnsayableError, z3.Z3Exception) as error:
                self.terms.append(None)
                self.reasons.append(f"`{condition.name}` holds {error}")

    def require(self, upto: int) -> None:
        """Raises `NotProvedError` when one of the first conditions has no formula."""
        for term, reason in zip(self.terms[:upto], self.reasons, strict=False):
            if term is None:
                raise NotProvedError(reason)

    def met(self, index: int) -> Formula:
        term = self.terms[index]
        assert term is not None
        return term.is_true

    def decides(self, index: int) -> Formula:
        """The condition is the first one that is met; the last index stands for none of them."""
        earlier = [z3.Not(self.met(each)) for each in range(index)]
        own = [] if index == len(self.terms) else [self.met(index)]
        return all_of([*earlier, *own])


def reachability(rule: p.Rule, seconds: float = SECONDS) -> Iterator[Verdict]:
    """For each condition: a payment that it decides, or why there is none."""
    for index, condition in enumerate(rule.conditions):
        encoder = Encoder(Source(full_vocabulary()))
        try:
            formulas = _Rule(encoder, rule)
            formulas.require(index + 1)
            witness = find(encoder, formulas.decides(index), seconds)
            if witness is not None:
                replayed = replay(rule, witness)
                if replayed.condition != condition.name:
                    raise NotProvedError("the payment that was found is decided otherwise")
                yield Verdict("reached", condition.name, "proved", (), witness, (replayed,))
                continue
            yield _dead(encoder, formulas, index, seconds)
        except NotProvedError as error:
            yield Verdict("reached", condition.name, "not proved", (str(error),))


def _dead(encoder: Encoder, formulas: _Rule, index: int, seconds: float) -> Verdict:
    """Never met at all, or only where one of those before it is met already."""
    name = formulas.rule.conditions[index].name
    if find(encoder, formulas.met(index), seconds) is None:
        return Verdict("met", name, "refuted")
    needed = list(range(index))
    for each in range(index):
        others = [other for other in needed if other != each]
        open_ = [z3.Not(formulas.met(other)) for other in others]
        try:
            if find(encoder, all_of([formulas.met(index), *open_]), seconds) is None:
                needed = others
        except NotProvedError:
            continue
    covers = tuple(formulas.rule.conditions[each].name for each in needed)
    return Verdict("reached", name, "refuted", covers)


def always_met(rule: p.Rule, seconds: float = SECONDS) -> Iterator[Verdict]:
    """The conditions that every payment meets that comes to them."""
    for index, condition in enumerate(rule.conditions):
        encoder = Encoder(Source(full_vocabulary()))
        try:
            formulas = _Rule(encoder, rule)
            formulas.require(index + 1)
            earlier = [z3.Not(formulas.met(each)) for each in range(index)]
            goal = all_of([*earlier, z3.Not(formulas.met(index))])
            if find(encoder, goal, seconds) is None:
                yield Verdict("not always met", condition.name, "refuted")
        except NotProvedError:
            continue


By: TypeAlias = Literal["action", "condition"]


def compare(
    old: p.Rule,
    new: p.Rule,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
    by: By = "condition",
    seconds: float = SECONDS,
) -> Verdict:
    """Whether two versions decide every payment alike, else a payment that they do not."""
    encoder = Encoder(Source(full_vocabulary()))
    name = new.name
    try:
        before, after = _Rule(encoder, old), _Rule(encoder, new)
        before.require(len(old.conditions))
        after.require(len(new.conditions))
        differ = _outcome(encoder, before, thresholds, by) != _outcome(
            encoder, after, thresholds, by
        )
        witness = find(encoder, differ, seconds)
        if witness is None:
            return Verdict("same", name, "proved")
        replayed = (replay(old, witness, thresholds), replay(new, witness, thresholds))
        if _seen(replayed[0], by) == _seen(replayed[1], by):
            raise NotProvedError("the payment that was found is decided alike")
        return Verdict("same", name, "refuted", (), witness, replayed)
    except NotProvedError as error:
        return Verdict("same", name, "not proved", (str(error),))


def _seen(replayed: Replayed, by: By) -> tuple[str | None, ...]:
    return (replayed.action,) if by == "action" else (replayed.action, replayed.condition)


def _outcome(encoder: Encoder, rule: _Rule, thresholds: Thresholds, by: By) -> Formula:
    """What the rule decides as a text: the action, and the condition where that is asked for."""
    outcome = _default(encoder, rule.rule, thresholds)
    for index in reversed(range(len(rule.terms))):
        condition = rule.rule.conditions[index]
        said = condition.action if by == "action" else f"{condition.action} {condition.name}"
        outcome = z3.If(rule.met(index), z3.StringVal(said), outcome)
    return outcome


def _default(encoder: Encoder, rule: p.Rule, thresholds: Thresholds) -> Formula:
    if rule.otherwise is not None:
        return z3.StringVal(rule.otherwise)
    score = encoder.asked_score(SCORE).value
    return z3.If(
        score >= thresholds.deny,
        z3.StringVal("deny"),
        z3.If(score >= thresholds.challenge, z3.StringVal("challenge"), z3.StringVal("allow")),
    )


def changed_conditions(old: p.Rule, new: p.Rule, seconds: float = SECONDS) -> Iterator[Verdict]:
    """For each condition of both versions: payments that only one of them meets."""
    earlier = {each.name: index for index, each in enumerate(old.conditions)}
    for index, condition in enumerate(new.conditions):
        if condition.name not in earlier:
            continue
        encoder = Encoder(Source(full_vocabulary()))
        before, after = _Rule(encoder, old), _Rule(encoder, new)
        of = earlier[condition.name]
        for subject, one, other in _MOVES:
            rules = {"old": (before, of), "new": (after, index)}
            try:
                yield from _moved(encoder, subject, rules[one], rules[other], seconds)
            except NotProvedError as error:
                yield Verdict(subject, condition.name, "not proved", (str(error),))


_MOVES: tuple[tuple[Subject, str, str], ...] = (
    ("wider", "new", "old"),
    ("narrower", "old", "new"),
)


def _moved(
    encoder: Encoder,
    subject: Subject,
    one: tuple[_Rule, int],
    other: tuple[_Rule, int],
    seconds: float,
) -> Iterator[Verdict]:
    """A payment that the first version's condition meets and the other's does not."""
    for rule, index in (one, other):
        if rule.terms[index] is None:
            raise NotProvedError(rule.reasons[index])
    goal = z3.And(one[0].met(one[1]), z3.Not(other[0].met(other[1])))
    witness = find(encoder, goal, seconds)
    if witness is not None:
        yield Verdict(subject, one[0].rule.conditions[one[1]].name, "proved", (), witness)
