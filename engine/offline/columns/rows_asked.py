"""The programs of a backtest over an export's rows: the candidate, and the rules that then decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sqlglot import exp

from tollkeeper.engine.columns.windows import WindowColumn, window_columns
from tollkeeper.engine.facts.fields_read import Access
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.backtest.backtest import candidate_of, was_published
from tollkeeper.engine.offline.backtest.candidate import (
    Candidate,
    every_recommendation,
    rule_candidate,
)
from tollkeeper.engine.offline.backtest.compare import Labels
from tollkeeper.engine.offline.columns.exported import ExportedHistory
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.sql import DIALECT
from tollkeeper.engine.offline.columns.translate import Translation
from tollkeeper.engine.offline.columns.window_values import translation_of
from tollkeeper.engine.programs.loaded import load_rule
from tollkeeper.engine.registry.changes import AccountSettings, SettingsChanged
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.grammar.program import Rule, Scorecard

_DECIDED_BY = (
    "SELECT DISTINCT decision.rule, decision.version FROM payments"
    " WHERE decision.score IS NOT NULL AND decision.rule IS NOT NULL ORDER BY ALL"
)


class ColumnsAsked(NamedTuple):
    """A backtest over an export, of payments that arrived from `since` (µs) up to `until`; `late` (µs) is
    how far behind the latest arrival the service counts a payment. `labels` override the exported ones.
    """

    target: Path
    account: str
    program: Rule | Scorecard
    since: int
    until: int
    late: int
    labels: Labels


@dataclass(frozen=True, slots=True)
class RowsOfProgram:
    """A program for the rows of `seen` for which the SQL `holds` is true.

    `number` distinguishes the columns of its windows from those of other programs. `windows` are the
    export's columns for its aggregates, in their order.
    """

    number: int
    candidate: Candidate
    windows: tuple[WindowColumn, ...]
    holds: str = "TRUE"

    @property
    def program(self) -> Rule | Scorecard:
        return self.candidate.program


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """The candidate, for payments that arrived from `since` (µs) up to `until`, and the `rules` that
    decide: the candidate itself, or, for a scorecard, the recorded rules by its scores.

    With `everyone`, a rule decides every payment that asked for a recommendation, else only those
    that name it or have it by default. `read` are the facts that all programs read.
    """

    exported: ExportedHistory
    tried: RowsOfProgram
    rules: tuple[RowsOfProgram, ...]
    since: int
    until: int
    everyone: bool

    def translation(self, rows: RowsOfProgram, facts: FactRows) -> Translation:
        """The translation of one of the programs."""
        settings = [each for _, each in settings_of(self.exported)]
        return translation_of(rows.program, facts, self.exported.lists, settings, rows.number)

    @property
    def read(self) -> frozenset[Access]:
        return frozenset().union(*(each.candidate.plan.read for each in self.programs))

    @property
    def programs(self) -> tuple[RowsOfProgram, ...]:
        return tuple({each.number: each for each in (self.tried, *self.rules)}.values())


def ask_rows(asked: ColumnsAsked, exported: ExportedHistory) -> RowsAsked:
    """The rows to decide, of the days that were opened, and the rules that then decide."""
    account, program = exported.account, asked.program
    candidate = candidate_of(program, account, asked.late)
    tried = RowsOfProgram(0, candidate, window_columns(program, {}))
    rules: tuple[RowsOfProgram, ...] = (tried,)
    if isinstance(program, Scorecard):
        rules = tuple(_rules_that_decided(exported, asked.late))
    everyone = not was_published(account, program)
    return RowsAsked(exported, tried, rules, asked.since, asked.until, everyone)


def _rules_that_decided(exported: ExportedHistory, late: int) -> Iterator[RowsOfProgram]:
    found = exported.tables.execute(_DECIDED_BY).fetchall() if exported.parts else []
    for number, (name, version) in enumerate(found, start=1):
        lineage = exported.account.files["rule", name]
        stored = next(each for each in lineage.versions if each.number == version)
        rule, vocabulary = decode_program(stored.program), full_vocabulary()
        assert isinstance(rule, Rule)
        loaded = load_rule(rule, version, vocabulary)
        candidate = rule_candidate(rule, loaded, every_recommendation, vocabulary, late)
        named = exp.Literal.string(name).sql(DIALECT)
        holds = f"(was_rule = {named} AND was_version = {version})"
        yield RowsOfProgram(number, candidate, window_columns(rule, {}), holds)


def settings_of(exported: ExportedHistory) -> list[tuple[int, AccountSettings]]:
    """The settings, each with the sequence number from which it held; the first one's is the
    beginning."""
    later = (
        (each.sequence, each.change.settings)
        for each in exported.changes
        if isinstance(each.change, SettingsChanged)
    )
    return [(0, AccountSettings()), *later]
