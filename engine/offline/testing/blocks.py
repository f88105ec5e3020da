"""Run the `test` blocks of a file on the compiled program, and explain them by the interpreter.

A test must say what live traffic would get, so its payment takes the same steps: facts are derived,
history is counted in windows, and the compiled rule decides. The interpreter, which defines the
meaning, decides as well and gives the reasons; the two may not differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from tollkeeper.engine.decision import Action, Decision
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.offline.testing.environments import EntryError, given_environment
from tollkeeper.engine.offline.testing.event_blocks import run_event_test
from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.offline.testing.given import given_facts, given_lets, given_score
from tollkeeper.engine.offline.testing.history import read_history
from tollkeeper.engine.offline.testing.outcomes import (
    BlockError,
    Failure,
    Ran,
    UnmetExpectation,
    agree,
    expected_histories,
    explained_rule,
    explained_scorecard,
    first_met,
    given_files,
)
from tollkeeper.engine.offline.testing.reasons import rule_reasons, scorecard_reasons
from tollkeeper.engine.offline.testing.streams import START, StreamError
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.explain import Inputs
from tollkeeper.engine.programs.compile.interpreter import evaluate
from tollkeeper.engine.programs.compile.python import compile_reads, compile_rule, compile_scorecard
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.engine.programs.decider import Programs, decide
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, load_rule, load_scorecard
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.names import SCORE

Tested: TypeAlias = p.Rule | p.Scorecard


def run_test(file: RuleFile, test: p.Test) -> UnmetExpectation:
    """Raises `BlockError`."""
    program = file.program
    try:
        if isinstance(program, p.EventType):
            return run_event_test(file, program, test)
        assert isinstance(program, p.Rule | p.Scorecard)
        return _run(file, program, test)
    except (StreamError, EntryError) as error:
        raise BlockError(str(error)) from None


def _run(file: RuleFile, written: Tested, test: p.Test) -> UnmetExpectation:
    files = given_files(file, test)
    # Later than the history: a streak needs an order.
    last = files.history[-1].arrived + 1 if files.history else START
    arrived = last if files.payment is None else max(last, to_microseconds(files.payment.timestamp))
    facts = given_facts(test.given, files.payment, arrived)
    environment = given_environment(written, test.given)
    as_written = _load_program(file)
    if extra := tuple(expected_histories(test)):
        written = replace(written, histories=(*written.histories, *extra))
        as_written = _load(written)
    program = given_lets(written, test.given)
    digests = Digests(program.lets)
    loaded = as_written
    if program.lets != written.lets:
        loaded = _with_lets_of(program, digests, as_written)
    # History is grouped by the lets' own values; only the payment uses the given ones.
    plan = as_written.reading.plan
    values: tuple[p.Value | None, ...] = ()
    if plan.windows:
        reads = tuple(zip(plan.windows, loaded.reading.keys(facts, environment), strict=True))
        values = read_history(plan, files.history, file.events, facts, reads, environment)
    score = given_score(test.given)
    decision = decide(_only_program(loaded), facts, values, environment, Thresholds(), score=score)
    ran = Ran(file, program, Inputs(facts, values, environment, decision.score, digests))
    if isinstance(program, p.Scorecard):
        agree(explained_scorecard(ran).score, decision.score)
    else:
        assert decision.rule is not None
        agree(first_met(program, ran.scope), decision.rule.condition)
    found = (_check(ran, decision, each) for each in test.expected)
    return UnmetExpectation(tuple(each for each in found if each is not None), ran)


@lru_cache(maxsize=16)
def _load_program(file: RuleFile) -> LoadedRule | LoadedScorecard:
    assert isinstance(file.program, p.Rule | p.Scorecard)
    return _load(file.program)


def _load(program: Tested) -> LoadedRule | LoadedScorecard:
    if isinstance(program, p.Scorecard):
        return load_scorecard(program, 0, full_vocabulary())
    return load_rule(program, 0, full_vocabulary())


def _with_lets_of(
    program: Tested, digests: Digests, as_written: LoadedRule | LoadedScorecard
) -> LoadedRule | LoadedScorecard:
    """The program with lets that a test gives. It reads the history that the written one reads, whose
    plan takes longer to make than the rest.
    """
    vocabulary = full_vocabulary()
    keys = compile_reads(program, digests, vocabulary)
    reading = replace(as_written.reading, keys=keys)
    if isinstance(as_written, LoadedScorecard):
        assert isinstance(program, p.Scorecard)
        return replace(
            as_written, reading=reading, score=compile_scorecard(program, vocabulary, digests)
        )
    assert isinstance(program, p.Rule)
    return replace(as_written, reading=reading, decide=compile_rule(program, vocabulary, digests))


def _only_program(loaded: LoadedRule | LoadedScorecard) -> Programs:
    if isinstance(loaded, LoadedRule):
        return Programs(None, loaded, recommends=True)
    return Programs(loaded, None, recommends=True)


def _check(ran: Ran, decision: Decision, expected: p.Expected) -> Failure | None:
    if not isinstance(expected, p.ExpectAction):
        return _check_value(ran, expected)
    assert isinstance(ran.program, p.Rule)
    came_out, wanted = _outcome_of(ran.program, decision), expected.condition
    if wanted is not None:
        as_expected = came_out.condition == wanted
    elif expected.action == "default":
        as_expected = came_out.is_default
    else:
        as_expected = came_out.action == expected.action
    if as_expected:
        return None
    return Failure(
        ran.file.line(expected.span),
        f"{expected.action} by {wanted}" if wanted else expected.action,
        str(came_out),
        rule_reasons(explained_rule(ran), wanted),
    )


@dataclass(frozen=True, slots=True)
class _CameOut:
    """`is_default` says that no condition was met and the rule leaves the action to the account.

    Then the action follows from the score by the default thresholds; None without a score.
    """

    action: Action | None
    condition: str | None
    is_default: bool

    def __str__(self) -> str:
        if self.condition is not None:
            return f"{self.action} by {self.condition}"
        if not self.is_default:
            return f"{self.action}, as the rule closes with otherwise {self.action}"
        return (
            "default" if self.action is None else f"default, which is {self.action} at this score"
        )


def _outcome_of(rule: p.Rule, decision: Decision) -> _CameOut:
    assert decision.rule is not None
    condition = decision.rule.condition
    is_default = condition is None and rule.otherwise is None
    action = None if is_default and decision.score is None else decision.action
    return _CameOut(action, condition, is_default)


def _check_value(ran: Ran, expected: p.Expected) -> Failure | None:
    assert isinstance(expected, p.ExpectValue)
    if evaluate(expected.value, ran.scope) is True:
        return None
    is_scored = isinstance(ran.program, p.Scorecard)
    return Failure(
        ran.file.line(expected.span),
        ran.file.written(expected.value.span),
        f"score {written_value(ran.inputs.score, SCORE)}",
        scorecard_reasons(explained_scorecard(ran)) if is_scored else (),
    )
