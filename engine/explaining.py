"""Why a stored payment was decided as it was, from the versions and values it recorded.

The account's lists, rates and time zone are taken as they stood at the payment's place in the
journal, so that the answer stays the same, whatever was changed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tollkeeper.engine.compile.explain import (
    Inputs,
    RuleExplanation,
    ScorecardExplanation,
    Sources,
    explain_rule,
    explain_scorecard,
)
from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.environment import Environment
from tollkeeper.engine.facts import Facts
from tollkeeper.engine.force import SCORECARD
from tollkeeper.engine.journal.contract import Journal
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.lists.contents import hold
from tollkeeper.engine.loading import SHIPPED, full_vocabulary, shipped_scorecard
from tollkeeper.engine.open import recorded
from tollkeeper.engine.registry.changes import Kind as FileKind
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.registry.environments import account_environment
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account, State, fold_all
from tollkeeper.engine.stored_lists import entries_at
from tollkeeper.engine.update import state_of
from tollkeeper.grammar.program import Program, Rule, Scorecard, Value


class Explanation(Struct, frozen=True):
    """`arrived` in µs. `scorecard` and `rule` are None where none was asked for.

    `repeated` says whether evaluating it again gave what was decided: it does, unless the person's
    data was erased, or the shipped scorecard is another by now.
    """

    payment: str
    arrived: int
    decision: Decision
    thresholds: Thresholds
    scorecard: ScorecardExplanation | None
    rule: RuleExplanation | None
    repeated: bool


async def explain(
    journal: Journal, folder: Path, account: int, payment_id: str
) -> Explanation | None:
    """The explanation of what was decided when the payment was created; None without it."""
    states = await journal.states(account, payment_id)
    if not states:
        return None
    return await asyncio.to_thread(_explain, journal, folder, states[0])


def _explain(journal: Journal, folder: Path, created: Entry) -> Explanation:
    state = state_of(created, created)
    facts: Facts = state.payment
    decision = state.decision or Decision()
    then = _account_at(journal, created.account, created.place)
    scorecard = rule = None
    if decision.score is not None:
        program, sources = _scorecard(then, decision.scorecard)
        split = len(program.histories)
        environment = _environment_at(folder, then, program, created.place)
        if split <= len(decision.reads):
            inputs = Inputs(facts, decision.reads[:split], environment)
            scorecard = explain_scorecard(program, sources, inputs, full_vocabulary())
        if decision.rule is not None:
            checked, texts = _rule(then, decision.rule)
            environment = _environment_at(folder, then, checked, created.place)
            theirs = _values(checked, decision.reads)
            inputs = Inputs(facts, theirs, environment, decision.score)
            rule = explain_rule(checked, texts, inputs, full_vocabulary())
    return Explanation(
        payment=created.id,
        arrived=created.arrived,
        decision=decision,
        thresholds=then.settings.thresholds,
        scorecard=scorecard,
        rule=rule,
        repeated=_repeated(decision, scorecard, rule),
    )


def _account_at(journal: Journal, number: int, place: int) -> Account:
    """The account as a payment at `place` met it."""
    batches = journal.replay(number, up_to=place, kinds=(Kind.CHANGE,))
    state = fold_all(State(), recorded(entry for batch in batches for entry in batch))
    return state.accounts[number]


def _environment_at(
    folder: Path, account: Account, program: Rule | Scorecard, place: int
) -> Environment:
    names = [*(use.name for use in program.lists), *(use.name for use in program.tables)]
    contents = {
        name: hold(account.lists[name].spec, entries_at(folder, account.number, name, place))
        for name in names
        if name in account.lists
    }
    return account_environment(account, contents)


def _scorecard(account: Account, number: int) -> tuple[Scorecard, Sources]:
    if number == 0:
        return shipped_scorecard().scorecard, {None: (SHIPPED / f"{SCORECARD}.rule").read_text()}
    program, sources = _stored(account, "scorecard", SCORECARD, number)
    assert isinstance(program, Scorecard)
    return program, sources


def _rule(account: Account, applied: AppliedRule) -> tuple[Rule, Sources]:
    program, sources = _stored(account, "rule", applied.name, applied.version)
    assert isinstance(program, Rule)
    return program, sources


def _stored(
    account: Account, kind: FileKind, name: str, number: int
) -> tuple[Program, Mapping[str | None, str]]:
    version = account.files[kind, name].versions[number - 1]
    sources: dict[str | None, str] = {None: version.text}
    return decode_program(version.program), sources | dict(version.uses.items())


def _values(rule: Rule, reads: Sequence[Value | None]) -> Sequence[Value | None]:
    """The rule's own values are the last ones."""
    return reads[len(reads) - len(rule.histories) :]


def _repeated(
    decision: Decision, scorecard: ScorecardExplanation | None, rule: RuleExplanation | None
) -> bool:
    if decision.score is None:
        return True
    if scorecard is None or scorecard.score != decision.score:
        return False
    return decision.rule is None or (rule is not None and rule.met == decision.rule.condition)


def by_what(explanation: Explanation) -> tuple[Action | None, str]:
    """The action, and in a few words what it came from."""
    decision = explanation.decision
    if decision.score is None:
        return None, "no analysis was asked for"
    if decision.rule is not None and decision.rule.condition is not None:
        return decision.action, f"condition `{decision.rule.condition}` was met"
    thresholds = explanation.thresholds
    limits = (
        f"the account challenges from {thresholds.challenge / 100:.2f}"
        f" and denies from {thresholds.deny / 100:.2f}"
    )
    if decision.rule is None:
        return decision.action, f"no rule was applied; {limits}"
    return decision.action, f"no condition was met; without an `otherwise`, {limits}"
