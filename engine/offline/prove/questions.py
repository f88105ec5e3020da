"""The questions about rules: which conditions can be met, what must hold, whether two rules decide
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Literal, ParamSpec, TypeAlias, get_args

import z3

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.prove.encode import EncodedProgram
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.payment import PaymentSource
from tollkeeper.engine.offline.prove.replay import ReplayedDecision, decide_witness, is_true
from tollkeeper.engine.offline.prove.search import NoFormulaError, NotProvedError, find_payment
from tollkeeper.engine.offline.prove.terms import Formula, SmtTerm, UnsayableError, all_of, any_of
from tollkeeper.engine.offline.prove.witness import Witness
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.names import SCORE

SECONDS = 2.0
"""The solver's time limit for one question."""
DEFAULT_THRESHOLDS = Thresholds()

_ACTIONS: tuple[p.Action, ...] = get_args(p.Action)

ProofAnswer: TypeAlias = Literal["proved", "refuted", "not proved"]
ProofBasis: TypeAlias = Literal["action", "condition"]
Move: TypeAlias = Literal["wider", "narrower"]

TOO_LARGE = "its numbers or texts become too large for a proof"
_OUT_OF_MEMORY = "out of memory"
_Given = ParamSpec("_Given")


@dataclass(frozen=True, slots=True)
class ProofVerdict:
    """The answer to one question.

    `witness` is the example payment, `replayed` the decision of each rule in question on it.
    `because` are the conditions on which the answer depends, or the reason why nothing was proved.
    `needs_work` says that a longer search might decide what is not proved.
    """

    answer: ProofAnswer
    because: tuple[str, ...] = ()
    witness: Witness | None = None
    replayed: tuple[ReplayedDecision, ...] = ()
    needs_work: bool = True


_DECIDED_OTHERWISE = ProofVerdict(
    "not proved", ("the payment that was found is decided otherwise",), needs_work=False
)


def _question(answer: Callable[_Given, ProofVerdict]) -> Callable[_Given, ProofVerdict]:
    """Make a search that ends without a proof or a payment the verdict `not proved`."""

    @wraps(answer)
    def ask(*given: _Given.args, **named: _Given.kwargs) -> ProofVerdict:
        try:
            return answer(*given, **named)
        except NotProvedError as error:
            needs_work = not isinstance(error, NoFormulaError)
            return ProofVerdict("not proved", (str(error),), needs_work=needs_work)
        except z3.Z3Exception as error:
            if _OUT_OF_MEMORY not in str(error):
                raise
            return ProofVerdict("not proved", (TOO_LARGE,), needs_work=False)

    return ask


class _Formulas:
    """A rule's conditions as formulas over the encoder's payment."""

    def __init__(self, encoder: Encoder, rule: p.Rule) -> None:
        self.encoder = encoder
        self.rule = rule
        self.program = EncodedProgram(encoder, rule.lets)

    def of(self, node: p.Expression, name: str) -> SmtTerm:
        """Raises `NotProvedError`."""
        try:
            return self.program.term(node)
        except UnsayableError as error:
            raise NoFormulaError(f"`{name}` reads {error}") from None

    def met(self, index: int) -> Formula:
        condition = self.rule.conditions[index]
        return self.of(condition.when, condition.name).is_true

    def none_before(self, index: int) -> Formula:
        return all_of([z3.Not(self.met(each)) for each in range(index)])

    def decides(self, index: int) -> Formula:
        """The condition is the first one that is met."""
        return z3.And(self.none_before(index), self.met(index))

    def outcome(self, thresholds: Thresholds, names: Sequence[str] = ()) -> Formula:
        """The decision as a number: the index of the action, or of the pair of action and condition
        among `names`.

        As texts, decisions would bring the solver's theory of strings into each question.
        """
        found = self._default(thresholds)
        for index in reversed(range(len(self.rule.conditions))):
            condition = self.rule.conditions[index]
            place = 1 + names.index(condition.name) if names else 0
            number = place * len(_ACTIONS) + _ACTIONS.index(condition.action)
            found = z3.If(self.met(index), number, found)
        return found

    def _default(self, thresholds: Thresholds) -> Formula:
        if self.rule.otherwise is not None:
            return z3.IntVal(_ACTIONS.index(self.rule.otherwise))
        score = self.encoder.asked_score(SCORE).value
        allow, challenge, deny = map(_ACTIONS.index, ("allow", "challenge", "deny"))
        challenged = z3.If(score >= thresholds.challenge, z3.IntVal(challenge), z3.IntVal(allow))
        return z3.If(score >= thresholds.deny, z3.IntVal(deny), challenged)


@_question
def reach(rule: p.Rule, index: int, *, seconds: float = SECONDS) -> ProofVerdict:
    """Whether some payment is decided by the condition with this index.

    Refuted with the earlier conditions that cover it; with none if no payment meets it at all.
    """
    encoder = Encoder(PaymentSource(full_vocabulary()))
    formulas = _Formulas(encoder, rule)
    witness = find_payment(encoder, formulas.decides(index), seconds)
    if witness is None:
        return ProofVerdict("refuted", _covers(formulas, index, seconds))
    replayed = decide_witness(rule, witness)
    if replayed.condition != rule.conditions[index].name:
        return _DECIDED_OTHERWISE
    return ProofVerdict("proved", (), witness, (replayed,))


@_question
def reach_beyond(
    rule: p.Rule, index: int, others: Sequence[p.Rule], *, seconds: float = SECONDS
) -> ProofVerdict:
    """Whether some payment is decided by the condition with this index, while none of the other
    rules gives it the same action by a condition of its own; refuted if there is none.
    """
    encoder = Encoder(PaymentSource(full_vocabulary()))
    action = rule.conditions[index].action
    decides = _Formulas(encoder, rule).decides(index)
    taken = [
        formulas.decides(number)
        for formulas in (_Formulas(encoder, each) for each in others)
        for number, condition in enumerate(formulas.rule.conditions)
        if condition.action == action
    ]
    goal = all_of([decides, *(z3.Not(each) for each in taken)])
    witness = find_payment(encoder, goal, seconds)
    if witness is None:
        return ProofVerdict("refuted")
    replayed = tuple(decide_witness(each, witness) for each in (rule, *others))
    own, *theirs = replayed
    beside = any(each.condition is not None and each.action == action for each in theirs)
    if own.condition != rule.conditions[index].name or beside:
        return _DECIDED_OTHERWISE
    return ProofVerdict("proved", (), witness, replayed)


def _covers(formulas: _Formulas, index: int, seconds: float) -> tuple[str, ...]:
    """Return earlier conditions that together are met wherever it is; as few as were found."""
    if find_payment(formulas.encoder, formulas.met(index), seconds) is None:
        return ()
    needed = list(range(index))
    for each in range(index):
        others = [other for other in needed if other != each]
        unmet = [z3.Not(formulas.met(other)) for other in others]
        try:
            goal = all_of([formulas.met(index), *unmet])
            if find_payment(formulas.encoder, goal, seconds) is None:
                needed = others
        except NotProvedError:
            continue
    return tuple(formulas.rule.conditions[each].name for each in needed)


@_question
def meet_always(rule: p.Rule, index: int, *, seconds: float = SECONDS) -> ProofVerdict:
    """Whether every payment that reaches the condition meets it; refuted by one that doesn't."""
    encoder = Encoder(PaymentSource(full_vocabulary()))
    formulas = _Formulas(encoder, rule)
    passes_by = z3.And(formulas.none_before(index), z3.Not(formulas.met(index)))
    witness = find_payment(encoder, passes_by, seconds)
    return ProofVerdict("proved") if witness is None else ProofVerdict("refuted", (), witness)


@_question
def compare_programs(
    old: p.Rule,
    new: p.Rule,
    by: ProofBasis = "condition",
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    *,
    seconds: float = SECONDS,
) -> ProofVerdict:
    """Whether both rules decide every payment alike; refuted by a payment on which they differ."""
    encoder = Encoder(PaymentSource(full_vocabulary()))
    conditions = (*old.conditions, *new.conditions) if by == "condition" else ()
    names = [each.name for each in conditions]
    outcomes = [_Formulas(encoder, rule).outcome(thresholds, names) for rule in (old, new)]
    witness = find_payment(encoder, outcomes[0] != outcomes[1], seconds)
    if witness is None:
        return ProofVerdict("proved")
    replayed = tuple(decide_witness(rule, witness, thresholds) for rule in (old, new))
    seen = [(each.action, by == "condition" and each.condition) for each in replayed]
    if seen[0] == seen[1]:
        because = ("the payment that was found is decided alike",)
        return ProofVerdict("not proved", because, needs_work=False)
    return ProofVerdict("refuted", (), witness, replayed)


@_question
def move(
    old: p.Rule, new: p.Rule, name: str, direction: Move, *, seconds: float = SECONDS
) -> ProofVerdict:
    """Whether the condition of this name is met by payments that didn't meet it before (wider), or
    no longer met by some (narrower); proved by such a payment.
    """
    encoder = Encoder(PaymentSource(full_vocabulary()))
    before, after = (_Formulas(encoder, rule).met(_index(rule, name)) for rule in (old, new))
    one, other = (after, before) if direction == "wider" else (before, after)
    witness = find_payment(encoder, z3.And(one, z3.Not(other)), seconds)
    if witness is None:
        return ProofVerdict("refuted")
    met_before, met_after = (
        is_true(rule, rule.conditions[_index(rule, name)].when, witness) for rule in (old, new)
    )
    if (met_before, met_after) != (direction == "narrower", direction == "wider"):
        return _DECIDED_OTHERWISE
    return ProofVerdict(
        "proved", (), witness, (decide_witness(old, witness), decide_witness(new, witness))
    )


def _index(rule: p.Rule, name: str) -> int:
    return next(index for index, each in enumerate(rule.conditions) if each.name == name)


@_question
def keep_promise(
    rule: p.Rule,
    promise: p.Promise,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    *,
    seconds: float = SECONDS,
) -> ProofVerdict:
    """Whether a `must` of the rule holds for every payment, including the actions that the
    account's thresholds give; refuted by the smallest violation found.
    """
    encoder = Encoder(PaymentSource(full_vocabulary()))
    formulas = _Formulas(encoder, rule)
    when = formulas.of(promise.when, promise.title or "must").is_true
    outcome = formulas.outcome(thresholds)
    among = any_of([outcome == _ACTIONS.index(each) for each in promise.actions])
    broken = among if promise.never else z3.Not(among)
    witness = find_payment(encoder, z3.And(when, broken), seconds)
    if witness is None:
        return ProofVerdict("proved")
    replayed = decide_witness(rule, witness, thresholds)
    if (replayed.action in promise.actions) != promise.never or not is_true(
        rule, promise.when, witness
    ):
        return _DECIDED_OTHERWISE
    return ProofVerdict("refuted", (), witness, (replayed,))
