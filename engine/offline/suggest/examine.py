"""Examine a suggested rule file: prove its conditions beside active rules, and backtest it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

from msgspec.structs import replace

from tollkeeper.engine.offline.backtest.report import Report
from tollkeeper.engine.offline.suggest.report import ProvedCondition, Suggestion
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule

_SECONDS = 2.0
"""The time (s) of each question to the solver."""


def examine(
    found: Suggestion, active: Sequence[Rule], backtest: Callable[[Rule, int], Report]
) -> Suggestion:
    """The suggestion with the proofs about its conditions beside the `active` rules, and with the
    `backtest` of its file, which takes the rule and the time (µs) to begin at."""
    if not found.text:
        return found
    rule = read_file(found.text.encode(), KnownNames()).program
    assert isinstance(rule, Rule)
    return replace(
        found, proved=tuple(_prove(rule, active)), backtest=backtest(rule, found.judged_since)
    )


def active_rules(account: Account) -> list[Rule]:
    """The rules of an account that decide now."""
    active = {
        (name, lineage.active)
        for (kind, name), lineage in account.files.items()
        if kind == "rule" and lineage.active is not None
    }
    decoded = (
        decode_program(version.program)
        for lineage in account.files.values()
        for version in lineage.versions
        if (version.name, version.number) in active and version.kind == "rule"
    )
    return [each for each in decoded if isinstance(each, Rule)]


def _prove(rule: Rule, active: Sequence[Rule]) -> Iterator[ProvedCondition]:
    if find_spec("z3") is None:
        return
    from tollkeeper.engine.offline.prove.questions import reach, reach_beyond
    from tollkeeper.engine.offline.prove.worker import open_worker

    with open_worker(_SECONDS) as worker:
        for index, condition in enumerate(rule.conditions):
            reached = worker.ask(reach, rule, index)
            beyond = worker.ask(reach_beyond, rule, index, active)
            yield ProvedCondition(
                condition.name,
                "not proved" if reached is None else reached.answer,
                "not proved" if beyond is None else beyond.answer,
            )
