"""What commands draw on a terminal: an explanation, a difference, a shadow's report, a fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from tollkeeper.api.terminal.backtest_words import amounts_text, headline, result_text
from tollkeeper.engine.explain.explain import Explanation, by_what
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.offline.backtest.report import OutcomeChange, Report, UnrecordedDecisions
from tollkeeper.engine.programs.compile.explain import (
    ExplainedCondition,
    ExplainedHistory,
    ExplainedLet,
    ExplainedPart,
    ExplainedSignal,
    RuleExplanation,
    ScorecardExplanation,
)
from tollkeeper.engine.publish.diff import Difference
from tollkeeper.engine.shadows.record import ShadowOutcome
from tollkeeper.engine.shadows.report import ShadowReport

if TYPE_CHECKING:
    # They need scikit-learn, which only fitting has.
    from tollkeeper.engine.offline.fit.fitting import Fitted
    from tollkeeper.engine.offline.fit.quality import Quality

ACTION_STYLES = {"allow": "green", "challenge": "yellow", "deny": "red"}
_OUTCOME_STYLES = {"met": "bold green", "refused": "", "undecided": "yellow", "not reached": "dim"}
_MARKS = {"met": "✔", "refused": "✘", "undecided": "?", "not reached": "·"}
_CHANGE_STYLES = {"added": "green", "removed": "red", "moved": "cyan", "changed": "yellow"}


# A backtest


def draw_backtest(report: Report) -> RenderableType:
    """How many payments would change, from what to what, and what to know about it."""
    payments, words = headline(report)
    head = Text.assemble((report.candidate, "bold"), f" over {payments}: ", (words, "bold"))
    parts: list[RenderableType] = [head]
    if report.changes:
        parts.append(_table("was", "would be", *_AMOUNT, rows=map(_changed, report.changes)))
    if report.decided:
        parts.append(_table("would be", *_AMOUNT, rows=map(_would_be, report.decided)))
    return Group(*parts, *(Text(note, style="yellow") for note in report.notes))


_AMOUNT = ("payments", "amount")


def _changed(change: OutcomeChange) -> tuple[str, ...]:
    return result_text(change.was), *_would_be(change)


def _would_be(part: OutcomeChange | UnrecordedDecisions) -> tuple[str, ...]:
    return result_text(part.now), f"{part.payments:,}", amounts_text(part.amounts)


def _table(*titles: str, rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title, justify="right" if title in _AMOUNT else "left")
    for row in rows:
        table.add_row(*row)
    return table


# A fitted scorecard


def draw_fitted(fitted: Fitted) -> RenderableType:
    """Each weight before and after, then how well both score on what was not learned from."""
    weights = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("signal", "before", "after", "said something of"):
        weights.add_column(title, justify="left" if title == "signal" else "right")
    weights.add_row("baseline", f"{fitted.baseline_before:g}", f"{fitted.baseline_after:g}", "")
    for each in fitted.weights:
        weights.add_row(each.signal, f"{each.before:g}", f"{each.after:g}", f"{each.met}")
    judged = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("", "before", "after"):
        judged.add_column(title, justify="right" if title else "left")
    for name, before, after in zip(
        _QUALITIES, _measures(fitted.before), _measures(fitted.after), strict=True
    ):
        judged.add_row(name, f"{before:.4f}", f"{after:.4f}")
    words = f"\nlearned from {fitted.learned} payments, judged on the {fitted.judged} after them\n"
    return Group(weights, Text(words), judged)


_QUALITIES = (
    "ROC AUC",
    "PR AUC",
    "recall at 0.1 % false positives",
    "recall at 1 % false positives",
    "calibration error",
)


def _measures(quality: Quality) -> tuple[float, ...]:
    return quality.roc_auc, quality.pr_auc, *quality.recall, quality.calibration_error


# An explanation


def draw_explanation(found: Explanation) -> RenderableType:
    """The decision, then how its score and its rule came about."""
    action, why = by_what(found)
    decision = found.decision
    head = Text.from_markup(
        f"payment [bold]{escape(found.payment)}[/], arrived {show_instant(found.arrived)}\n"
    )
    if decision.score is not None:
        head.append_text(_action(action))
        head.append(f"  score {decision.score / 100:.2f}  ")
    head.append(why)
    parts: list[RenderableType] = [head]
    if not found.repeated:
        words = "evaluated again it gives something else: data was erased"
        parts.append(Text(words, style="yellow"))
    if found.scorecard is not None:
        parts.append(_draw_scorecard(found.scorecard, decision.scorecard))
    if found.rule is not None and decision.rule is not None:
        parts.append(_draw_rule(found.rule, decision.rule.version))
    return Group(*parts)


def _draw_scorecard(card: ScorecardExplanation, version: int) -> Tree:
    origin = "as shipped" if version == 0 else f"version {version}"
    tree = Tree(
        Text.from_markup(
            f"scorecard [bold]{card.scorecard}[/], {origin}: score {card.score / 100:.2f},"
            f" logit {card.logit:+.2f} from {card.baseline:+.2f}"
        )
    )
    for signal in card.signals:
        tree.add(_signal_line(signal))
    _add_lets(tree, card.lets)
    _add_histories(tree, card.histories)
    return tree


def _signal_line(signal: ExplainedSignal) -> Tree:
    line = _line(signal.outcome, f"{signal.contribution:+.2f}", signal.name, signal.title)
    tree = Tree(line)
    if signal.outcome != "refused":
        _add_part(tree, signal.adds)
    if signal.when is not None:
        _add_part(tree, signal.when)
    return tree


def _draw_rule(rule: RuleExplanation, version: int) -> Tree:
    tree = Tree(Text.from_markup(f"rule [bold]{rule.rule}[/], version {version}"))
    for condition in rule.conditions:
        tree.add(_condition_tree(condition, nearest=rule.nearest))
    _add_lets(tree, rule.lets)
    _add_histories(tree, rule.histories)
    return tree


def _condition_tree(condition: ExplainedCondition, nearest: str | None) -> Tree:
    line = _line(condition.outcome, condition.action, condition.name, condition.title)
    if condition.name == nearest:
        line.append("  came nearest", style="cyan")
    tree = Tree(line)
    if condition.outcome != "not reached":
        _add_part(tree, condition.when)
    return tree


def _line(outcome: str, lead: str, name: str, title: str | None) -> Text:
    line = Text(f"{_MARKS[outcome]} {lead} {name}", style=_OUTCOME_STYLES[outcome])
    if outcome in ("undecided", "not reached"):
        line.append(f"  {outcome}")
    if title is not None:
        line.append(f"  {title}", style="dim")
    return line


def _add_lets(tree: Tree, lets: Iterable[ExplainedLet]) -> None:
    for let in lets:
        source = "" if let.source is None else f" of {let.source}"
        branch = tree.add(Text.assemble((f"let {let.name}{source}", "bold")))
        _add_part(branch, let.value)


def _add_histories(tree: Tree, histories: tuple[ExplainedHistory, ...]) -> None:
    if not histories:
        return
    branch = tree.add(Text("over history", style="bold"))
    for history in histories:
        line = Text(f"{history.text} = ")
        line.append(history.value, style="magenta")
        window = "" if history.window is None else f", window {history.window}"
        line.append(f"  key {', '.join(history.keys)}{window}", style="dim")
        listed = branch.add(line)
        for record in history.records or ():
            value = "" if record.value is None else f"  {record.value}"
            listed.add(Text(f"{record.id}  {record.at}{value}"))
        if history.note is not None:
            listed.add(Text(history.note, style="dim"))


def _add_part(tree: Tree, part: ExplainedPart) -> None:
    line = Text(f"{part.text} = ")
    line.append(part.value, style=_value_style(part.value))
    branch = tree.add(line)
    for inner in part.parts:
        _add_part(branch, inner)


def _value_style(value: str) -> str:
    return {"true": "green", "false": "red", "missing": "yellow"}.get(value, "magenta")


def _action(action: str | None) -> Text:
    return Text(action or "no action", style=ACTION_STYLES.get(action or "", "dim"))


# A difference


def draw_differences(found: Iterable[Difference]) -> Iterator[Text]:
    """A line for each difference."""
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
    """How many decisions would change, from what to what, with examples."""
    head = Text(
        f"{report.kind} {report.name}, version {report.version}: {report.changed} of"
        f" {report.evaluated} decisions would change",
        style="bold",
    )
    if report.failed or report.skipped:
        head.append(f" ({report.failed} failed, {report.skipped} skipped)", style="yellow")
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
