"""What commands draw on a terminal: a backtest, a fit, differences, a shadow's report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tollkeeper.api.terminal.backtest_words import NO_ACTION, amounts_text, headline, result_text
from tollkeeper.api.terminal.explanation import ACTION_STYLES
from tollkeeper.engine.offline.backtest.compare import SHOWN_EXAMPLES
from tollkeeper.engine.offline.backtest.report import OutcomeChange, Report, UnrecordedDecisions

if TYPE_CHECKING:
    # Requires scikit-learn, which only fitting has.
    from tollkeeper.engine.offline.fit.fitting import FittedScorecard
    from tollkeeper.engine.offline.fit.quality import Quality
    from tollkeeper.engine.offline.preview import Preview

    # Requires z3, which only proving has.
    from tollkeeper.engine.offline.prove.prove_text import ProofsOfText
    from tollkeeper.engine.publish.diff import Difference
    from tollkeeper.engine.shadows.record import ShadowOutcome
    from tollkeeper.engine.shadows.report import ShadowReport

_CHANGE_STYLES = {"added": "green", "removed": "red", "moved": "cyan", "changed": "yellow"}


# A backtest


def draw_backtest(report: Report) -> RenderableType:
    """Draw how many payments would change, from what to what, with the caveats."""
    payments, words = headline(report)
    head = Text.assemble((report.candidate, "bold"), f" over {payments}: ", (words, "bold"))
    parts: list[RenderableType] = [head]
    if report.changes:
        parts.append(_table("was", "would be", *_AMOUNT, rows=map(_change_cells, report.changes)))
    if report.decided:
        parts.append(_table("would be", *_AMOUNT, rows=map(_would_be, report.decided)))
    if report.labels:
        parts.append(_table("label", "was", "would be", *_AMOUNT, rows=_of_labels(report)))
    return Group(*parts, *(Text(note, style="yellow") for note in report.notes))


def draw_examples(report: Report, most: int) -> RenderableType:
    """Draw the latest payments of each change, up to `most`."""
    return _table("payment", "arrived", "was", "would be", "amount", rows=_examples(report, most))


def draw_preview(found: Preview) -> Iterator[RenderableType]:
    """Draw the changes in meaning, then in decisions, with the latest payments of each."""
    if found.replaces is None:
        yield Text("nothing is active under this name")
    elif found.differences:
        yield Text(f"against version {found.replaces}:")
        yield from draw_differences(found.differences)
    else:
        yield Text(f"it says the same as version {found.replaces}")
    if found.proofs is not None:
        yield from _draw_proofs(found.proofs)
    elif found.lacks_solver:
        yield Text("what that means is not proved: it needs the extra `prove`")
    if found.report is None:
        return
    yield draw_backtest(found.report)
    if found.report.changes:
        yield draw_examples(found.report, SHOWN_EXAMPLES)


def _draw_proofs(found: ProofsOfText) -> Iterator[RenderableType]:
    from tollkeeper.api.terminal.proof_lines import draw_proof

    for proof in found.proofs:
        yield from draw_proof(proof)
    if not found.complete:
        yield Text("the time was over before all was asked")


def _examples(report: Report, most: int) -> Iterator[tuple[str, ...]]:
    for change in report.changes:
        for each in change.examples[:most]:
            amount = "" if each.amount is None else f"{each.amount} {each.currency}"
            was, now = result_text(change.was), result_text(change.now)
            yield each.id, each.at, was, now, amount


_AMOUNT = ("payments", "amount")


def _change_cells(change: OutcomeChange) -> tuple[str, ...]:
    return result_text(change.was), *_would_be(change)


def _would_be(part: OutcomeChange | UnrecordedDecisions) -> tuple[str, ...]:
    return result_text(part.now), f"{part.payments:,}", amounts_text(part.amounts)


def _of_labels(report: Report) -> Iterator[tuple[str, ...]]:
    for label in report.labels:
        for each in label.moved:
            was, now = each.was or NO_ACTION, each.now or NO_ACTION
            moved = (was, now, f"{each.payments:,}", amounts_text(each.amounts))
            yield label.value or "no label", *moved


def _table(*titles: str, rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        # Ids aren't wrapped, so that they can be copied.
        is_id = title == "payment"
        table.add_column(title, justify="right" if title in _AMOUNT else "left", no_wrap=is_id)
    for row in rows:
        table.add_row(*row)
    return table


# A fitted scorecard


def draw_fitted(fitted: FittedScorecard) -> RenderableType:
    """Draw each number before and after, then both scorecards' quality on held-back data."""
    weights = _columns("signal", "before", "after", "said something of")
    weights.add_row("baseline", f"{fitted.baseline_before:g}", f"{fitted.baseline_after:g}", "")
    for each in fitted.weights:
        weights.add_row(each.signal, f"{each.before:g}", f"{each.after:g}", f"{each.met}")
    parts: list[RenderableType] = [weights]
    if fitted.curves:
        curves = _columns("curve", "least", "most")
        for curve in fitted.curves:
            curves.add_row(curve.signal, f"{curve.lowest:+g}", f"{curve.highest:+g}")
        parts += [Text(), curves]
    if fitted.set_aside:
        aside = ", ".join(f"{count} {why}" for why, count in fitted.set_aside.items())
        parts.append(Text(f"\nset aside, as nobody can tell what they were: {aside}"))
    words = f"\nlearned from {fitted.learned} payments, judged on the {fitted.judged} after them\n"
    parts += [Text(words), _quality_table(fitted.before, fitted.after)]
    if fitted.left_out is not None:
        words = "\nand on the payments learned from, each by curves that never saw its campaign\n"
        parts += [Text(words), _quality_table(*fitted.left_out)]
    reliability = _columns("of payments that score about", "payments", "bots")
    for part in fitted.after.calibration:
        reliability.add_row(f"{part.predicted:.2f}", f"{part.count}", f"{part.observed:.2f}")
    return Group(*parts, Text("\nwhat the new score is worth\n"), reliability)


def _columns(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first)
    for title in others:
        table.add_column(title, justify="right")
    return table


def _quality_table(before: Quality, after: Quality) -> Table:
    judged = _columns("", "before", "after")
    for name, old, new in zip(_QUALITIES, _measures(before), _measures(after), strict=True):
        judged.add_row(name, f"{old:.4f}", f"{new:.4f}")
    for old_share, new_share in zip(before.stopped, after.stopped, strict=True):
        for who in ("people", "bots"):
            name = f"{who} at {old_share.threshold:.2f} or more"
            shares = getattr(old_share, who), getattr(new_share, who)
            judged.add_row(name, *(f"{share:.4f}" for share in shares))
    return judged


_QUALITIES = (
    "ROC AUC",
    "PR AUC",
    "recall at 0.1 % false positives",
    "recall at 1 % false positives",
    "calibration error",
)


def _measures(quality: Quality) -> tuple[float, ...]:
    return quality.roc_auc, quality.pr_auc, *quality.recall, quality.calibration_error


# A difference


def draw_differences(found: Iterable[Difference]) -> Iterator[Text]:
    """Yield a line for each difference."""
    for each in found:
        line = Text(f"{each.change:<8}", style=_CHANGE_STYLES[each.change])
        line.append(each.what, style="bold")
        if each.aspect is not None:
            line.append(f" {each.aspect}")
        if each.change in ("changed", "moved"):
            line.append(": ")
            line.append(each.before or "nothing", style="red")
            line.append(" → ")
            line.append(each.after or "nothing", style="green")
        else:
            gist = each.before or each.after
            line.append(f": {gist}" if gist else "")
        yield line


# A shadow's report


def draw_report(report: ShadowReport) -> RenderableType:
    """Draw how many decisions would change, from what to what, with examples."""
    head = Text(
        f"{report.kind} {report.name}, version {report.version}: {report.changed} of"
        f" {report.evaluated} decisions would change",
        style="bold",
    )
    if report.failed or report.skipped:
        head.append(f" ({report.failed} failed, {report.skipped} skipped)", style="yellow")
    if report.since is not None:
        head.append(f"\nthe newest ones, since {report.since}", style="dim")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("from", "to", "count", "examples"):
        table.add_column(title, justify="right" if title == "count" else "left")
    for turn in report.turns:
        examples = "\n".join(
            f"{example.payment}  {_brief(example.decided)} → {_brief(example.would)}"
            for example in turn.examples
        )
        table.add_row(
            Text(turn.was, style=ACTION_STYLES.get(turn.was, "")),
            Text(turn.would_be, style=ACTION_STYLES.get(turn.would_be, "")),
            str(turn.count),
            Text(examples),
        )
    return Group(head, table) if report.turns else head


def _brief(outcome: ShadowOutcome) -> str:
    score = "" if outcome.score is None else f" {outcome.score / 100:.2f}"
    return f"{outcome.condition or 'no condition'}{score}"
