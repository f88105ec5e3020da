"""The reasons for a program's outcome as lines of text: `declines > 5 is false`."""

from __future__ import annotations

from collections.abc import Iterator

from tollkeeper.engine.programs.compile.explain import (
    ExplainedCondition,
    ExplainedPart,
    RuleExplanation,
    ScorecardExplanation,
)

INDENT = "  "


def rule_reasons(explained: RuleExplanation, wanted: str | None = None) -> tuple[str, ...]:
    """The reasons of the condition that was met, or came nearest, and of the expected one."""
    named = dict.fromkeys(
        name for name in (explained.met or explained.nearest, wanted) if name is not None
    )
    found = {each.name: each for each in explained.conditions}
    return tuple(line for name in named for line in _condition(found[name]))


def scorecard_reasons(explained: ScorecardExplanation) -> tuple[str, ...]:
    """What each true signal added to the baseline's logit."""
    lines = [f"baseline adds {explained.baseline:+.2f}"]
    for each in explained.signals:
        if each.contribution:
            lines.append(f"{each.name} adds {each.contribution:+.2f}")
            lines += () if each.when is None else part_lines(each.when, 1)
    return tuple(lines)


def part_lines(part: ExplainedPart, depth: int = 0) -> Iterator[str]:
    """A line for the part, and an indented one for each of its parts."""
    yield f"{INDENT * depth}{part.text} is {part.value}"
    for each in part.parts:
        yield from part_lines(each, depth + 1)


def values_read(part: ExplainedPart) -> Iterator[str]:
    """The values that the part is based on: only those that were read, not computed ones."""
    if not part.parts:
        yield f"{part.text} is {part.value}"
    for each in part.parts:
        yield from values_read(each)


def _condition(condition: ExplainedCondition) -> Iterator[str]:
    verb = {"met": "was met", "undecided": "was not met, for a missing value"}.get(
        condition.outcome, "was not met" if condition.outcome == "refused" else "was not reached"
    )
    yield f"condition {condition.name} {verb}"
    yield from part_lines(condition.when, 1)
