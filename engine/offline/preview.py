"""Preview a publication: the differences in meaning, and the decisions that would change."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.backtest.report import Report
from tollkeeper.engine.offline.backtest.stored import account_now
from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.diff import Difference, Side, diff_sides, side_of
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.registry.versions import active_version, program_kind
from tollkeeper.grammar.program import Rule, Scorecard

if TYPE_CHECKING:
    from tollkeeper.engine.offline.prove.prove_text import ProofsOfText


@dataclass(frozen=True, slots=True)
class Preview:
    """`replaces` is the active version, None for none; `report` is None for files that decide
    nothing. `proofs` say how a rule differs from the one that it replaces; None for other files,
    and when the extra `prove` is missing, which `lacks_solver` says."""

    replaces: int | None
    differences: tuple[Difference, ...]
    proofs: ProofsOfText | None
    lacks_solver: bool
    report: Report | None


def preview_file(
    source: JournalSource, account: str, file: RuleFile, period: tuple[int, int], progress: Progress
) -> Preview:
    """Compare the file with the active version, and backtest it on arrivals within `period` (µs).

    Raises `NotFound`, `Invalid`, `JournalError`.
    """
    program, texts = file.program, file.texts
    of = account_now(source, account)
    active = active_version(of, program_kind(program), program.name)
    differences: tuple[Difference, ...] = ()
    proofs, lacks_solver = None, False
    if active is not None:
        former = side_of(active)
        differences = diff_sides(former, Side(program, texts))
        if isinstance(former.program, Rule) and isinstance(program, Rule):
            proofs = _compare(former.program, program, of.settings.thresholds)
            lacks_solver = proofs is None
    report = None
    if isinstance(program, Rule | Scorecard):
        report = backtest_account(source, account, program, period, {}, progress)
    replaces = None if active is None else active.number
    return Preview(replaces, differences, proofs, lacks_solver, report)


def _compare(former: Rule, rule: Rule, thresholds: Thresholds) -> ProofsOfText | None:
    if find_spec("z3") is None:
        return None
    from tollkeeper.engine.offline.prove.prove_text import compare_with_former

    return compare_with_former(former, rule, thresholds)
