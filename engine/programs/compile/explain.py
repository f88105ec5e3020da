"""Explain a decision: the interpreter's value of every part of a program, for people to read.

Each let is explained once, beside the conditions or signals. Values are written as in a rule;
`missing` stands for a missing value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.interpreter import (
    EvaluationScope,
    evaluate,
    field_value,
    step_of,
    with_lets,
)
from tollkeeper.engine.programs.compile.reckoning import carry, double
from tollkeeper.engine.programs.compile.shown import one_line, shown_duration, written_value
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.grammar.walk import children, parts, roots

ConditionOutcome: TypeAlias = Literal["met", "refused", "undecided", "not reached"]
Sources: TypeAlias = Mapping[str | None, str]
"""The program's text under None; the texts that its lets were imported from, by `Let.source`."""

Decisive: TypeAlias = p.Rule | p.Scorecard | p.EventType

MAX_PARTS: Final = 20_000
"""Parts of aggregates over transactions that are shown; with more, those of the first transactions."""


class ExplainedPart(Struct, frozen=True):
    """A part of an expression: its span and text, its value, and its own parts.

    An aggregate over transactions has the parts of each transaction, one after another.
    """

    id: int
    span: tuple[int, int]
    text: str
    value: str
    parts: tuple[ExplainedPart, ...] = ()


class ExplainedLet(Struct, frozen=True):
    """A let's value; `source` names the file its spans mean, None for the program's own."""

    name: str
    source: str | None
    value: ExplainedPart


class CountedRecord(Struct, frozen=True):
    """A payment or event that an aggregate counted: its id, its event time, and its value; None for
    an aggregate that counts records."""

    id: str
    at: str
    value: str | None


class ExplainedHistory(Struct, frozen=True):
    """An aggregate over history: its value, its keys, and the length of its window.

    `records` are those that it counted, if they are known and few; else `note` may say why not.
    """

    text: str
    value: str
    keys: tuple[str, ...]
    window: str | None
    records: tuple[CountedRecord, ...] | None = None
    note: str | None = None


class ExplainedCondition(Struct, frozen=True):
    """`undecided`: a missing value left it neither true nor false."""

    name: str
    title: str | None
    action: p.Action
    outcome: ConditionOutcome
    when: ExplainedPart


class RuleExplanation(Struct, frozen=True):
    """`met` is the met condition. Without one, `nearest` is the condition that came nearest, and
    `otherwise` is the action, None where the account's thresholds decide.

    `transactions_shown` is there when aggregates show the parts of only that many transactions.
    """

    rule: str
    met: str | None
    nearest: str | None
    otherwise: p.Action | None
    conditions: tuple[ExplainedCondition, ...]
    lets: tuple[ExplainedLet, ...]
    histories: tuple[ExplainedHistory, ...]
    transactions_shown: int | UnsetType = UNSET


class ExplainedSignal(Struct, frozen=True):
    """`contribution` is what it added to the logit: 0 unless it was met and has a value."""

    name: str
    title: str | None
    outcome: ConditionOutcome
    contribution: float
    when: ExplainedPart | None
    adds: ExplainedPart


class ScorecardExplanation(Struct, frozen=True):
    """`score` in hundredths, of the logit: the baseline's and the signals' contributions.

    `transactions_shown` is as a rule's.
    """

    scorecard: str
    score: int
    baseline: float
    logit: float
    signals: tuple[ExplainedSignal, ...]
    lets: tuple[ExplainedLet, ...]
    histories: tuple[ExplainedHistory, ...]
    transactions_shown: int | UnsetType = UNSET


_LetShares: TypeAlias = Sequence[Mapping[bool, float]]
"""How close each let is to false and to true; empty for a let of another type."""


class _ShownText(NamedTuple):
    """The source text of parts, and of how many transactions an aggregate shows its parts."""

    text: str
    transactions: int


class Inputs(Struct, frozen=True):
    """What a program read; `values` are those of its histories, in their order.

    `digests` are the program's, if they have been computed already.
    """

    facts: Any
    values: Sequence[Value | None]
    environment: Environment
    score: int | None = None
    digests: Digests | None = None


def explain_rule(
    rule: p.Rule, sources: Sources, inputs: Inputs, vocabulary: Vocabulary
) -> RuleExplanation:
    """The outcome of each condition for a payment.

    The nearest condition is the one with the largest share of what it needs: each operand of an
    `and` counts alike, of an `or` the best one counts, a let counts as what it stands for, a missing
    value counts nothing. Of equal ones it is the first.
    """
    scope = scope_of(rule, inputs, vocabulary)
    own, transactions_shown = _shown_text(rule, scope, sources)
    found = [evaluate(condition.when, scope) for condition in rule.conditions]
    met = found.index(True) if True in found else None
    conditions = tuple(
        ExplainedCondition(
            condition.name,
            condition.title,
            condition.action,
            "not reached" if met is not None and index > met else _outcome(found[index]),
            _part(condition.when, scope, own),
        )
        for index, condition in enumerate(rule.conditions)
    )
    of_lets = _shares_of_lets(rule, scope)
    shares = [_share(each.when, scope, of_lets, wanted=True) for each in rule.conditions]
    nearest = None if met is not None or not shares else shares.index(max(shares))
    return RuleExplanation(
        rule.name,
        None if met is None else rule.conditions[met].name,
        None if nearest is None else rule.conditions[nearest].name,
        rule.otherwise,
        conditions,
        _lets(rule, scope, sources, own.transactions),
        _histories(rule, scope, sources),
        transactions_shown,
    )


def explain_scorecard(
    scorecard: p.Scorecard, sources: Sources, inputs: Inputs, vocabulary: Vocabulary
) -> ScorecardExplanation:
    """What each signal added to the score of a payment."""
    scope = scope_of(scorecard, inputs, vocabulary)
    own, transactions_shown = _shown_text(scorecard, scope, sources)
    baseline = math.log(scorecard.baseline / (1 - scorecard.baseline))
    logit = baseline
    signals = []
    for signal in scorecard.signals:
        is_met = True if signal.when is None else evaluate(signal.when, scope)
        adds = evaluate(signal.adds, scope)
        contribution = 0.0 if not is_met or adds is None else double(adds)
        logit += contribution
        signals.append(
            ExplainedSignal(
                signal.name,
                signal.title,
                _outcome(is_met),
                contribution,
                None if signal.when is None else _part(signal.when, scope, own),
                _part(signal.adds, scope, own),
            )
        )
    return ScorecardExplanation(
        scorecard.name,
        functions.score(logit),
        baseline,
        logit,
        tuple(signals),
        _lets(scorecard, scope, sources, own.transactions),
        _histories(scorecard, scope, sources),
        transactions_shown,
    )


def scope_of(
    program: p.Rule | p.Scorecard, inputs: Inputs, vocabulary: Vocabulary
) -> EvaluationScope:
    """The scope in which the program's expressions have their values."""
    digests = inputs.digests or Digests(program.lets)
    histories = {
        digests.of(history): value
        for history, value in zip(program.histories, inputs.values, strict=True)
    }
    scope = EvaluationScope(
        vocabulary, digests, inputs.facts, inputs.score, histories, inputs.environment
    )
    return with_lets(scope, program.lets)


def _shown_text(
    program: p.Rule | p.Scorecard, scope: EvaluationScope, sources: Sources
) -> tuple[_ShownText, int | UnsetType]:
    """The program's own text, and of how many transactions it is shown where those are not all."""
    of_each = sum(
        1
        for root, _ in roots(program)
        for fold in parts(root)
        if isinstance(fold, p.Fold)
        for _ in parts(fold)
    )
    most = max(1, MAX_PARTS // max(1, of_each))
    sent = len(_transactions(scope))
    return _ShownText(sources[None], most), most if most < sent and of_each else UNSET


def _transactions(scope: EvaluationScope) -> Sequence[Any]:
    found: Sequence[Any] = (
        field_value(scope.facts, scope.vocabulary.payment, ("transactions",)) or ()
    )
    return found


def _outcome(value: bool | None) -> ConditionOutcome:
    return "undecided" if value is None else "met" if value else "refused"


def _shares_of_lets(rule: p.Rule, scope: EvaluationScope) -> _LetShares:
    found: list[Mapping[bool, float]] = []
    for let in rule.lets:
        is_condition = isinstance(let.value.type, t.Boolean)
        wanted = (False, True) if is_condition else ()
        found.append({each: _share(let.value, scope, found, wanted=each) for each in wanted})
    return found


def _share(
    node: p.Expression, scope: EvaluationScope, of_lets: _LetShares, *, wanted: bool
) -> float:
    """How close the expression is to `wanted`, from 0 to 1; `of_lets` are the lets' shares."""
    match node:
        case p.Not():
            return _share(node.operand, scope, of_lets, wanted=not wanted)
        case p.LetValue():
            return of_lets[node.index][wanted]
        case p.And() | p.Or():
            shares = [_share(operand, scope, of_lets, wanted=wanted) for operand in node.operands]
            needs_all = isinstance(node, p.And) is wanted
            return sum(shares) / len(shares) if needs_all else max(shares)
        case _:
            return 1.0 if evaluate(node, scope) is wanted else 0.0


def _part(node: p.Expression, scope: EvaluationScope, shown: _ShownText) -> ExplainedPart:
    value = carry(evaluate(node, scope), node.type)
    return ExplainedPart(
        node.id,
        (node.span.start, node.span.end),
        _step(node, scope, shown.text)
        if isinstance(node, p.Curve)
        else _written_text(node.span, shown.text),
        written_value(value, node.type),
        tuple(_inner(node, scope, shown)),
    )


def _step(node: p.Curve, scope: EvaluationScope, text: str) -> str:
    """The step of a curve that a payment is on, as its author wrote it."""
    amount = step_of(node, evaluate(node.value, scope))
    if amount is None:
        return "missing"
    adds = _written_text(amount.span, text)
    if amount is node.absent:
        return f"missing: {adds}"
    place = next(index for index, each in enumerate(node.amounts) if each is amount)
    if place == len(node.bounds):
        return f"else {adds}"
    return f"< {_written_text(node.bounds[place].span, text)}: {adds}"


def _inner(
    node: p.Expression, scope: EvaluationScope, shown: _ShownText
) -> Iterator[ExplainedPart]:
    if isinstance(node, p.History):
        return
    if isinstance(node, p.Fold):
        for transaction in _transactions(scope)[: shown.transactions]:
            inside = replace(scope, element=transaction)
            yield from (_part(each, inside, shown) for each in children(node))
        return
    for each in children(node):
        if not isinstance(each, p.Constant):
            yield _part(each, scope, shown)


def _written_text(span: Span, text: str) -> str:
    return one_line(text[span.start : span.end])


def _lets(
    program: p.Rule | p.Scorecard, scope: EvaluationScope, sources: Sources, transactions: int
) -> tuple[ExplainedLet, ...]:
    """The lets without those of event types, which have values for an event alone."""
    return tuple(
        ExplainedLet(
            let.name,
            let.source,
            _part(let.value, scope, _ShownText(sources.get(let.source, ""), transactions)),
        )
        for let in program.lets
        if let.event is None
    )


def _histories(
    program: p.Rule | p.Scorecard, scope: EvaluationScope, sources: Sources
) -> tuple[ExplainedHistory, ...]:
    found = []
    for history, text in zip(program.histories, written_histories(program, sources), strict=True):
        keys = tuple(
            written_value(carry(evaluate(key, scope), key.type), key.type) for key in history.keys
        )
        value = written_value(scope.histories[scope.digests.of(history)], history.type)
        window = None if history.over is None else shown_duration(history.over)
        found.append(ExplainedHistory(text, value, keys, window))
    return tuple(found)


def written_histories(program: Decisive, sources: Sources) -> tuple[str, ...]:
    """The aggregates over history of a program, as their authors wrote them, on one line each."""
    texts = {id(history): source for history, source in _places(program)}
    return tuple(
        _written_text(history.span, sources.get(texts.get(id(history)), ""))
        for history in program.histories
    )


def _places(program: Decisive) -> Iterator[tuple[p.History, str | None]]:
    """The aggregates that stand in lets, with the file that each let was taken from."""
    for let in program.lets:
        waiting = [let.value]
        while waiting:
            node = waiting.pop()
            if isinstance(node, p.History):
                yield node, let.source
            else:
                waiting.extend(children(node))
