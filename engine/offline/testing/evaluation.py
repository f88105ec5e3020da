"""`toll eval`: one decision without a server, on the way that live payments go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.explain.evidence import aggregate_reads, list_records, list_without_records
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.intake.payment import Analyze
from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.offline.replay import ReplayedCreation, empty_windows, replay
from tollkeeper.engine.offline.testing.cases import Case, CaseDecision, decide_case, explained_rule
from tollkeeper.engine.offline.testing.files import Library, RuleFile, load_file
from tollkeeper.engine.offline.testing.history import happenings
from tollkeeper.engine.offline.testing.outcomes import Ran
from tollkeeper.engine.offline.testing.reasons import INDENT, let_lines, part_lines
from tollkeeper.engine.offline.testing.streams import (
    Entered,
    StreamError,
    created_of,
    read_stream,
)
from tollkeeper.engine.programs.compile.explain import (
    ExplainedHistory,
    ExplainedLet,
    ExplainedPart,
    ExplainedSignal,
    RuleExplanation,
    ScorecardExplanation,
    explain_scorecard,
)
from tollkeeper.engine.programs.compile.shown import shown
from tollkeeper.engine.programs.loaded import reading_of
from tollkeeper.engine.velocity.contract import Observation, Record, Windows
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
    if not body.strip():
        raise StreamError("no payment was given on standard input")
    items = [] if history is None else read_stream(history)
    created = created_of(body, items[-1].arrived if items else now)
    tried = load_file(path, library)
    if not isinstance(tried.program, Rule | Scorecard):
        raise StreamError(f"{path} declares neither a rule nor a scorecard, so nothing decides")
    created = replace(created, payment=replace(created.payment, analyze=Analyze(True)))
    case = Case([*items, created], [tried, *_scorecards_beside(tried, library)])
    every = decide_case(case, score)
    decided = every[-1]
    records = list(_known(case, every).values())
    scorecard = rule = None
    if decided.scorecard is not None and score is None:
        scorecard = _scored(decided.scorecard)
        listed = _with_records(decided.scorecard, scorecard.histories, records)
        scorecard = replace(scorecard, histories=listed)
    if decided.rule is not None:
        rule = explained_rule(decided.rule)
        listed = _with_records(decided.rule, rule.histories, records)
        rule = replace(rule, histories=listed)
    return Evaluation(decided.decision, scorecard, rule)


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


def _known(case: Case, every: Sequence[CaseDecision]) -> dict[tuple[str | None, str], Record]:
    """Every payment and event as known when the last payment was decided."""
    decisions = {each.created.payment.id: each.decision for each in every}
    decisions.pop(every[-1].created.payment.id)

    async def judge(windows: Windows, creation: ReplayedCreation) -> tuple[Observation, None]:
        observed = await windows.observe(creation.record, ())
        decision = decisions.get(creation.record.id)
        return observed if decision is None else await windows.settle(observed, decision), None

    async def run() -> dict[tuple[str | None, str], Record]:
        found: dict[tuple[str | None, str], Record] = {}
        items = (item for item in case.items if not isinstance(item, Entered))
        async for step in replay(happenings(items, case.events()), await empty_windows([]), judge):
            assert step.observed is not None
            record = step.observed.record
            found[record.event, record.id] = record
        return found

    return asyncio.run(run())


def _with_records(
    ran: Ran, histories: Sequence[ExplainedHistory], records: Sequence[Record]
) -> tuple[ExplainedHistory, ...]:
    reading = reading_of(ran.program, full_vocabulary())
    facts, values = ran.inputs.facts, ran.inputs.values
    reads = aggregate_reads(
        reading.plan, reading.keys(facts), values, facts.timestamp, facts.payment.id
    )
    return tuple(
        list_without_records(history, read) or list_records(history, read, records)
        for history, read in zip(histories, reads, strict=True)
    )


def _scored(ran: Ran) -> ScorecardExplanation:
    assert isinstance(ran.program, Scorecard)
    return explain_scorecard(ran.program, ran.file.texts, ran.inputs, full_vocabulary())


def _scorecard_lines(explained: ScorecardExplanation) -> Iterator[str]:
    yield f"scorecard {explained.scorecard} gives {shown(explained.score, SCORE)}"
    yield f"{INDENT}baseline adds {explained.baseline:+.2f}"
    heard = [each for each in explained.signals if each.contribution]
    for each in heard:
        yield f"{INDENT}{each.name} adds {each.contribution:+.2f}"
        for part in _parts(each):
            yield from part_lines(part, 2)
    for let in _lets_read(explained.lets, [part for each in heard for part in _parts(each)]):
        yield from (INDENT + line for line in let_lines(let))
    yield f"{INDENT}{len(explained.signals) - len(heard)} other signals add nothing"


def _parts(signal: ExplainedSignal) -> list[ExplainedPart]:
    said = [] if signal.adds.text == signal.adds.value else [signal.adds]
    return said if signal.when is None else [signal.when, *said]


def _lets_read(lets: Sequence[ExplainedLet], parts: Sequence[ExplainedPart]) -> list[ExplainedLet]:
    """The lets that the parts read, themselves or through others, in the order of the file."""
    read = {text for part in parts for text in _texts(part)}
    found = []
    for let in reversed(lets):
        if let.name in read:
            found.append(let)
            read.update(_texts(let.value))
    return found[::-1]


def _texts(part: ExplainedPart) -> Iterator[str]:
    yield part.text
    for each in part.parts:
        yield from _texts(each)


def _rule_lines(explained: RuleExplanation) -> Iterator[str]:
    met = "no condition is met" if explained.met is None else f"{explained.met} is met"
    nearest = "" if explained.nearest is None else f", {explained.nearest} came nearest"
    yield f"rule {explained.rule}: {met}{nearest}"
    for each in explained.conditions:
        yield f"{INDENT}{each.name} ({each.action}): {each.outcome}"
        if each.outcome != "not reached":
            yield from part_lines(each.when, 2)
    for let in explained.lets:
        yield from (INDENT + line for line in let_lines(let))
    yield from _history_lines(explained.histories)


def _history_lines(histories: tuple[ExplainedHistory, ...]) -> Iterator[str]:
    for each in histories:
        keys = ", ".join(each.keys)
        over = "" if each.window is None else f" over {each.window}"
        yield f"{INDENT}{each.text} is {each.value}, for {keys}{over}"
        for record in each.records or ():
            value = "" if record.value is None else f"  {record.value}"
            yield f"{INDENT * 2}{record.id}  {record.at}{value}"
        if each.note is not None:
            yield f"{INDENT * 2}{each.note}"
