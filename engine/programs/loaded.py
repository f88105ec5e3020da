"""Stored versions, ready to run: compiled once, with the aggregates that each of them reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tollkeeper.engine.decision import Action, AppliedRule
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile.counting import Counting
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.python import compile_reads, compile_rule, compile_scorecard
from tollkeeper.engine.programs.compile.series import compile_series, fit_series
from tollkeeper.engine.velocity.contract import CompiledSeries, Key, Read, SeriesPlan
from tollkeeper.engine.velocity.plan import Plan, plan
from tollkeeper.grammar.checker.cost import program_cost
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.program import EventType, Rule, Scorecard, Series, Value
from tollkeeper.grammar.vocabulary import Vocabulary

ProgramValues = Sequence[Value | None]


@dataclass(frozen=True, slots=True)
class Reading:
    """A program's reads of history: the aggregates, and the functions that give their keys."""

    plan: Plan
    keys: Callable[..., tuple[Key | None, ...]]

    def reads(self, *arguments: Any) -> tuple[Read, ...]:
        """Each window with the key of the group to read; the arguments are those of `keys`."""
        windows = self.plan.windows
        return tuple(zip(windows, self.keys(*arguments), strict=True)) if windows else ()


@dataclass(frozen=True, slots=True)
class LoadedRule:
    """`decide(facts, score, values, environment)` is the index of the met condition, or -1.

    `applied` and `actions` have an item for each condition, and a last one (index -1) for when none
    is met. An action is None where the rule leaves it to the account's thresholds. `cost` is as
    `counting_cost` gives it.
    """

    version: int
    reading: Reading
    cost: int
    decide: Callable[[Facts, int | None, ProgramValues, Environment], int]
    applied: tuple[AppliedRule, ...]
    actions: tuple[Action | None, ...]

    @property
    def series(self) -> tuple[SeriesPlan, ...]:
        """The series that it reads."""
        return self.reading.plan.series


@dataclass(frozen=True, slots=True)
class LoadedScorecard:
    """`score(facts, values, environment)` is in hundredths. Version 0 is the shipped one. `cost` is as
    `counting_cost` gives it.
    """

    version: int
    reading: Reading
    cost: int
    score: Callable[[Facts, ProgramValues, Environment], int]

    @property
    def series(self) -> tuple[SeriesPlan, ...]:
        """The series that it reads."""
        return self.reading.plan.series


def load_rule(rule: Rule, version: int, vocabulary: Vocabulary) -> LoadedRule:
    name, conditions = rule.name, rule.conditions
    return LoadedRule(
        version=version,
        reading=reading_of(rule, vocabulary),
        cost=counting_cost(rule, vocabulary),
        decide=compile_rule(rule, vocabulary),
        applied=(
            *(AppliedRule(name, version, each.name, each.title) for each in conditions),
            AppliedRule(name, version),
        ),
        actions=(*(each.action for each in conditions), rule.otherwise),
    )


def load_scorecard(scorecard: Scorecard, version: int, vocabulary: Vocabulary) -> LoadedScorecard:
    return LoadedScorecard(
        version,
        reading_of(scorecard, vocabulary),
        counting_cost(scorecard, vocabulary),
        compile_scorecard(scorecard, vocabulary),
    )


def counting_cost(program: Rule | Scorecard | EventType, vocabulary: Vocabulary) -> int:
    """What counting one payment or event for a program's aggregates takes at most, in nanoseconds as
    the checker reckons.
    """
    return program_cost(program, Numbers(program.lets), vocabulary).counted


def reading_of(
    program: Rule | Scorecard | EventType, vocabulary: Vocabulary, digests: Digests | None = None
) -> Reading:
    """Compile only the program's reads of history. `digests` are the program's, computed here if they
    are not given."""
    digests = digests or Digests(program.lets)

    def compiled(series: Series) -> CompiledSeries:
        made = compile_series(series, digests, vocabulary)
        return made if series.event is None else fit_series(made, series, program.lets)

    counting = partial(Counting, digests=digests, vocabulary=vocabulary)
    return Reading(
        plan=plan(program.histories, program.lets, compiled, digests.of, counting),
        keys=compile_reads(program, digests, vocabulary),
    )
