"""What publishing a file would change: of the rule's meaning, and of decisions already made."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.backtest.report import Report
from tollkeeper.engine.offline.backtest.stored import account_now
from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.diff import Difference, Side, diff_sides, side_of
from tollkeeper.engine.registry.versions import active_version, program_kind
from tollkeeper.grammar.program import Rule, Scorecard


@dataclass(frozen=True, slots=True)
class Preview:
    """`replaces` is the active version, None for none; `report` is None of what decides nothing."""

    replaces: int | None
    differences: tuple[Difference, ...]
    report: Report | None


def preview_file(
    source: JournalSource, account: str, file: RuleFile, period: tuple[int, int], progress: Progress
) -> Preview:
    """The file beside what is active, and on what arrived within `period` (µs).

    Raises `NotFound`, `Invalid`, `JournalError`.
    """
    program, texts = file.program, file.texts
    active = active_version(account_now(source, account), program_kind(program), program.name)
    differences: tuple[Difference, ...] = ()
    if active is not None:
        differences = diff_sides(side_of(active), Side(program, texts))
    report = None
    if isinstance(program, Rule | Scorecard):
        report = backtest_account(source, account, program, period, {}, progress)
    return Preview(None if active is None else active.number, differences, report)
