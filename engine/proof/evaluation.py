"""`toll eval`: one decision without a server, on the way that live payments go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tollkeeper.engine.compile.explain import (
    ExplainedHistory,
    RuleExplanation,
    ScorecardExplanation,
    explain_scorecard,
)
from tollkeeper.engine.compile.shown import shown
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.files import SUFFIX
from tollkeeper.engine.loading import full_vocabulary
from tollkeeper.engine.payment import Analyze
from tollkeeper.engine.proof.cases import Case, decide_case, explained_rule
from tollkeeper.engine.proof.files import Library, RuleFile, load_file
from tollkeeper.engine.proof.outcomes import Ran
from tollkeeper.engine.proof.reasons import INDENT, let_lines, part_lines
from tollkeeper.engine.proof.streams import StreamError, created_of, read_stream
from tollkeeper.grammar.checker.names import SCORE
from tollkeeper.grammar.program import Rule, Scorecard


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`scorecard` is None when the score was set, `rule` when a scorecard was tried out."""

    decision: Decision
    scorecard: ScorecardExplanation | None
    rule: RuleExplanation | None


def evaluate_payment(
    path: Path,
    body: bytes,
    library: Library,
    *,
    now: int,
    history: Path | None = None,
    score: int | None = None,
) -> Evaluation:
    """What the rule or scorecard in `path` decides about the payment in `body`.

    `body` is that of `POST /payments`; the payment arrives at its own timestamp, or at `now` (µs)
    without one, after the stream in `history`, all of it decided by the same rule. The scorecard is
    the folder's own, or the shipped one; `score` (hundredths) takes its place. Raises
    `BrokenFileError`, and `StreamError` for what is wrong with the payment or the history.

    A recommendation is always asked for, whatever the payment says of `analyze`.
    """
    items = [] if history is None else read_stream(history)
    created = created_of(body, items[-1].arrived if items else now)
    tried = load_file(path, library)
    if not isinstance(tried.program, Rule | Scorecard):
        raise StreamError(f"{path} declares neither a rule nor a scorecard, so nothing decides")
    created = replace(created, payment=replace(created.payment, analyze=Analyze(True)))
    case = Case([*items, created], [tried, *_scorecards_beside(tried, library)])
    decided = decide_case(case, score)[-1]
    return Evaluation(
        decided.decision,
        None if score is not None or decided.scorecard is None else _scored(decided.scorecard),
        None if decided.rule is None else explained_rule(decided.rule),
    )


def explanation_lines(evaluation: Evaluation) -> Iterator[str]:
    """Every condition with the value of every part, then the signals that had something to say."""
    if evaluation.rule is not None:
        yield from _rule_lines(evaluation.rule)
    if evaluation.scorecard is not None:
        yield from _scorecard_lines(evaluation.scorecard)


def _scorecards_beside(tried: RuleFile, library: Library) -> list[RuleFile]:
    if isinstance(tried.program, Scorecard):
        return []
    beside = sorted(set(tried.path.parent.glob(f"*{SUFFIX}")) - {tried.path})
    files = [load_file(each, library) for each in beside if b"scorecard" in each.read_bytes()]
    return [file for file in files if isinstance(file.program, Scorecard)]


def _scored(ran: Ran) -> ScorecardExplanation:
    assert isinstance(ran.program, Scorecard)
    return explain_scorecard(ran.program, ran.file.texts, ran.inputs, full_vocabulary())


def _scorecard_lines(explained: ScorecardExplanation) -> Iterator[str]:
    yield f"scorecard {explained.scorecard} gives {shown(explained.score, SCORE)}"
    yield f"{INDENT}baseline adds {explained.baseline:+.2f}"
    heard = [each for each in explained.signals if each.contribution]
    for each in heard:
        yield f"{INDENT}{each.name} adds {each.contribution:+.2f}"
        parts = [each.adds] if each.when is None else [each.when, each.adds]
        for part in parts:
            yield from part_lines(part, 2)
    yield f"{INDENT}{len(explained.signals) - len(heard)} other signals add nothing"
    yield from _history_lines(
        tuple(each for each in explained.histories if each.value != "missing")
    )


def _rule_lines(explained: RuleExplanation) -> Iterator[str]:
    met = "no condition is met" if explained.met is None else f"{explained.met} is met"
    nearest = "" if explained.nearest is None else f", {explained.nearest} came nearest"
    yield f"rule {explained.rule}: {met}{nearest}"
    for each in explained.conditions:
        yield f"{INDENT}{each.name} ({each.action}): {each.outcome}"
        yield from part_lines(each.when, 2)
    for let in explained.lets:
        yield from (INDENT + line for line in let_lines(let))
    yield from _history_lines(explained.histories)


def _history_lines(histories: tuple[ExplainedHistory, ...]) -> Iterator[str]:
    for each in histories:
        keys = ", ".join(each.keys)
        over = "" if each.window is None else f" over {each.window}"
        yield f"{INDENT}{each.text} is {each.value}, for {keys}{over}"
