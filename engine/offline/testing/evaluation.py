"""`toll eval`: one decision without a server, by the same steps as a live payment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from tollkeeper.engine.explain.evidence import aggregate_reads, list_records, list_without_records
from tollkeeper.engine.explain.explain import Explanation
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.intake.payment import Analyze
from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.offline.replay import ReplayedCreation, empty_windows, replay_live
from tollkeeper.engine.offline.testing.cases import Case, CaseDecision, decide_case
from tollkeeper.engine.offline.testing.files import Library, RuleFile, load_file
from tollkeeper.engine.offline.testing.history import happenings
from tollkeeper.engine.offline.testing.outcomes import Ran, explained_rule, explained_scorecard
from tollkeeper.engine.offline.testing.streams import (
    ListLine,
    StreamError,
    created_of,
    read_stream,
)
from tollkeeper.engine.programs.compile.explain import ExplainedHistory
from tollkeeper.engine.programs.loaded import reading_of
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.velocity.contract import Observation, Record
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.program import Rule, Scorecard


def evaluate_payment(
    path: Path,
    body: bytes,
    library: Library,
    *,
    now: int,
    history: Path | None = None,
    score: int | None = None,
) -> Explanation:
    """Decide the payment in `body` by the rule or scorecard in `path`, and explain the decision.

    `body` is that of `POST /payments`; the payment arrives at its own timestamp, or at `now` (µs)
    without one, after the stream in `history`, all of it decided by the same rule. The scorecard is
    the folder's own, or the shipped one; with `score` (hundredths) none is used or explained.
    Raises `BrokenFileError`, and `StreamError` for a fault in the payment or the history.

    A recommendation is always asked for, whatever the payment's `analyze` says.
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
    records = list(_records_by_id(case, every).values())
    scorecard = rule = None
    if decided.scorecard is not None and score is None:
        scorecard = explained_scorecard(decided.scorecard)
        listed = _with_records(decided.scorecard, scorecard.histories, records)
        scorecard = replace(scorecard, histories=listed)
    if decided.rule is not None:
        rule = explained_rule(decided.rule)
        listed = _with_records(decided.rule, rule.histories, records)
        rule = replace(rule, histories=listed)
    return Explanation(
        payment=created.payment.id,
        arrived=created.arrived,
        decision=decided.decision,
        thresholds=Thresholds(),
        scorecard=scorecard,
        rule=rule,
        repeated=True,
    )


def _scorecards_beside(tried: RuleFile, library: Library) -> list[RuleFile]:
    if isinstance(tried.program, Scorecard):
        return []
    beside = sorted(set(tried.path.parent.glob(f"*{SUFFIX}")) - {tried.path})
    files = [load_file(each, library) for each in beside if b"scorecard" in each.read_bytes()]
    return [file for file in files if isinstance(file.program, Scorecard)]


def _records_by_id(
    case: Case, every: Sequence[CaseDecision]
) -> dict[tuple[str | None, str], Record]:
    """Every payment and event as of the last payment's decision."""
    decisions = {each.created.payment.id: each.decision for each in every}
    decisions.pop(every[-1].created.payment.id)
    environments = {
        each.created.payment.id: ran.inputs.environment
        for each in every
        for ran in (each.scorecard, each.rule)
        if ran is not None
    }

    async def judge(windows: Windows, creation: ReplayedCreation) -> tuple[Observation, None]:
        met = environments.get(creation.record.id)
        state = replace(creation.record.state, environment=met)
        observed = await windows.observe(replace(creation.record, state=state), ())
        decision = decisions.get(creation.record.id)
        return observed if decision is None else await windows.settle(observed, decision), None

    items = (item for item in case.items if not isinstance(item, ListLine))
    steps = replay_live(happenings(items, case.events()), empty_windows([]), judge)
    records = (step.observed.record for step in steps)
    return {(record.event, record.id): record for record in records}


def _with_records(
    ran: Ran, histories: Sequence[ExplainedHistory], records: Sequence[Record]
) -> tuple[ExplainedHistory, ...]:
    reading = reading_of(ran.program, full_vocabulary(), ran.inputs.digests)
    facts, values, environment = ran.inputs.facts, ran.inputs.values, ran.inputs.environment
    reads = aggregate_reads(
        reading.plan, reading.keys(facts, environment), values, facts.timestamp, facts.payment.id
    )
    return tuple(
        list_without_records(history, read) or list_records(history, read, records)
        for history, read in zip(histories, reads, strict=True)
    )
