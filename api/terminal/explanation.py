"""An explanation on a terminal: the reason first, then the records that its values count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import UNSET
from rich.text import Text

from tollkeeper.engine.explain.explain import Explanation
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.programs.compile.explain import (
    ExplainedCondition,
    ExplainedHistory,
    ExplainedLet,
    ExplainedPart,
    ExplainedSignal,
    RuleExplanation,
    ScorecardExplanation,
)

ACTION_STYLES = {"allow": "green", "challenge": "yellow", "deny": "red"}
_MARKS = {"met": "✔", "refused": "✘", "undecided": "?", "not reached": "·"}
_OUTCOME_STYLES = {"met": "bold green", "refused": "", "undecided": "yellow", "not reached": "dim"}
_VALUE_STYLES = {"true": "green", "false": "red", "missing": "yellow"}
_SHOWN_CONTRIBUTION = 0.005


def reason_line(explanation: Explanation) -> Text:
    """Return the action, its condition and the score: `deny by large, score 0.91`."""
    decision = explanation.decision
    if decision.score is None:
        return Text("no analysis was asked for")
    line = Text(decision.action or "no action", style=ACTION_STYLES.get(decision.action or "", ""))
    if decision.rule is not None and decision.rule.condition is not None:
        line.append(f" by {decision.rule.condition}")
    line.append(f", score {decision.score / 100:.2f}", style="default")
    return line.append(", held out: answered with allow") if decision.held_out else line


def payment_line(explanation: Explanation) -> Text:
    """Return the stored payment, and the versions that decided it."""
    decision = explanation.decision
    parts = [f"payment {explanation.payment}", f"arrived {show_instant(explanation.arrived)}"]
    if decision.rule is not None:
        parts.append(f"rule {decision.rule.name} version {decision.rule.version}")
    if decision.score is not None:
        version = f"version {decision.scorecard}" if decision.scorecard else "as shipped"
        parts.append(f"scorecard {version}")
    return Text(", ".join(parts))


def explanation_lines(explanation: Explanation) -> Iterator[Text]:
    """Return the lines: the reason, the rule, then the scorecard.

    Signals that add nothing share one line. Of conditions that weren't met, other than the nearest,
    only the values that they read are shown. JSON has everything.
    """
    yield from _default_lines(explanation)
    if explanation.rule is not None:
        yield from _rule_lines(explanation.rule)
    if explanation.scorecard is not None:
        yield from _scorecard_lines(explanation.scorecard)


def _default_lines(explanation: Explanation) -> Iterator[Text]:
    decision, rule = explanation.decision, explanation.rule
    if not explanation.repeated:
        yield Text("evaluating it again gives another result: data was erased", style="yellow")
    if decision.score is None or (rule is not None and rule.met is not None):
        return
    unmet = "no rule was applied" if rule is None else f"no condition of {rule.rule} is met"
    if rule is not None and rule.otherwise is not None:
        yield Text(f"{unmet}, and it closes with otherwise {rule.otherwise}")
        return
    challenge, deny = (
        f"{each / 100:.2f}"
        for each in (explanation.thresholds.challenge, explanation.thresholds.deny)
    )
    yield Text(f"{unmet}: the account challenges from {challenge} and denies from {deny}")


def _rule_lines(rule: RuleExplanation) -> Iterator[Text]:
    yield _headline(f"rule {rule.rule}", rule)
    reason = rule.met or rule.nearest
    for each in rule.conditions:
        if each.name == reason:
            yield _condition_head(each, nearest=rule.nearest)
            yield from _part_lines(each.when, 2, rule.histories)
            yield from _let_lines(_lets_read([each.when], rule.lets), rule.histories)
    for each in rule.conditions:
        if each.name != reason and each.outcome != "not reached":
            read = dict.fromkeys(_values_read(each.when))
            yield _condition_head(each, rule.nearest).append(f": {', '.join(read)}", style="")
    if unreached := [each.name for each in rule.conditions if each.outcome == "not reached"]:
        yield Text(f"  {_MARKS['not reached']} not reached: {', '.join(unreached)}", style="dim")


def _headline(headline: str, program: RuleExplanation | ScorecardExplanation) -> Text:
    line = Text(headline, style="bold")
    if program.transactions_shown is UNSET:
        return line
    shown = f", aggregates with the parts of the first {program.transactions_shown} transactions"
    return line.append(shown, style="yellow")


def _condition_head(condition: ExplainedCondition, nearest: str | None) -> Text:
    line = Text(f"  {_MARKS[condition.outcome]} {condition.name} ({condition.action})")
    line.stylize(_OUTCOME_STYLES[condition.outcome])
    if condition.title is not None:
        line.append(f" {condition.title}", style="default")
    if condition.name == nearest:
        line.append(", came nearest", style="cyan")
    return line


def _scorecard_lines(scorecard: ScorecardExplanation) -> Iterator[Text]:
    score = f"{scorecard.score / 100:.2f}"
    yield _headline(f"scorecard {scorecard.scorecard}: score {score}", scorecard)
    yield Text(f"  {scorecard.baseline:+.2f} baseline")
    contributing = [
        each for each in scorecard.signals if abs(each.contribution) >= _SHOWN_CONTRIBUTION
    ]
    lets = list(scorecard.lets)
    for signal in sorted(contributing, key=lambda each: -abs(each.contribution)):
        line = Text(f"  {signal.contribution:+.2f} {signal.name}")
        yield line if signal.title is None else line.append(f" {signal.title}", style="dim")
        parts = _signal_parts(signal)
        for part in parts:
            yield from _part_lines(part, 2, scorecard.histories)
        read = _lets_read(parts, lets)
        yield from _let_lines(read, scorecard.histories)
        lets = [let for let in lets if let not in read]
    if silent := [each.name for each in scorecard.signals if each not in contributing]:
        signals = "signal adds" if len(silent) == 1 else "signals add"
        yield Text(f"  {len(silent)} {signals} nothing: {', '.join(silent)}", style="dim")


def _signal_parts(signal: ExplainedSignal) -> list[ExplainedPart]:
    computed = [] if signal.adds.text == signal.adds.value else [signal.adds]
    return computed if signal.when is None else [signal.when, *computed]


def _let_lines(
    lets: Iterable[ExplainedLet], histories: Sequence[ExplainedHistory]
) -> Iterator[Text]:
    for let in lets:
        yield _is(f"let {let.name}", let.value.value, 2)
        yield from _part_lines(let.value, 3, histories)


def _lets_read(parts: Sequence[ExplainedPart], lets: Sequence[ExplainedLet]) -> list[ExplainedLet]:
    """Return the lets that the parts read, directly or through other lets, in file order."""
    read = {text for part in parts for text in _texts(part)}
    lets_read = []
    for let in reversed(lets):
        if let.name in read:
            lets_read.append(let)
            read.update(_texts(let.value))
    return lets_read[::-1]


def _texts(part: ExplainedPart) -> Iterator[str]:
    """Yield the texts of all parts, a name without the brackets around it."""
    yield part.text.strip("( )")
    for each in part.parts:
        yield from _texts(each)


def _part_lines(
    part: ExplainedPart, depth: int, histories: Iterable[ExplainedHistory]
) -> Iterator[Text]:
    """Yield the part, then its own parts indented; values that it reads directly are on its line."""
    line = _is(part.text, part.value, depth)
    counted = [each for each in histories if (each.text, each.value) == (part.text, part.value)]
    if part.parts and not any(each.parts for each in part.parts):
        read = dict.fromkeys(f"{each.text} is {each.value}" for each in part.parts)
        yield line.append(f", as {', '.join(read)}", style="default")
        return
    if not counted:
        yield line
    for history in counted:
        yield from _history_lines(line.copy(), history, depth)
    for each in part.parts:
        yield from _part_lines(each, depth + 1, histories)


def _history_lines(line: Text, history: ExplainedHistory, depth: int) -> Iterator[Text]:
    if history.keys:
        line.append(f", for {', '.join(history.keys)}", style="default")
    yield line
    if history.records:
        records = (
            f"{each.id} {each.at if each.value is None else each.value}" for each in history.records
        )
        yield Text(f"{'  ' * (depth + 1)}of {', '.join(records)}", style="dim")
    if history.note is not None:
        yield Text(f"{'  ' * (depth + 1)}{history.note}", style="dim")


def _values_read(part: ExplainedPart) -> Iterator[str]:
    if not part.parts:
        yield f"{part.text} is {part.value}"
    for each in part.parts:
        yield from _values_read(each)


def _is(text: str, value: str, depth: int) -> Text:
    return Text(f"{'  ' * depth}{text} is ").append(value, _VALUE_STYLES.get(value, "magenta"))
