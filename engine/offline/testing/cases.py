"""Cases: a stream of payments and updates, decided as live traffic is, with a readable result.

A case is in a folder `cases` beside the rule files that are active for it. A payment gets the rule
that it names; one that names none is decided once by each rule of the folder, as if that were the
account's default rule. A payment without `analyze` asks for a recommendation. The account has
default settings, and the folder's own scorecard if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from msgspec import structs

from tollkeeper.engine.decide import analyse
from tollkeeper.engine.decision import Decision
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.offline.paths import CASES, SUFFIX
from tollkeeper.engine.offline.replay import (
    TEST_ACCOUNT,
    ReplayedCreation,
    empty_windows,
    replay_live,
)
from tollkeeper.engine.offline.testing.environments import EntryError, empty_contents, with_entries
from tollkeeper.engine.offline.testing.files import Library, RuleFile, load_file
from tollkeeper.engine.offline.testing.history import Events, happenings, with_recommendation
from tollkeeper.engine.offline.testing.outcomes import Ran, explained_rule
from tollkeeper.engine.offline.testing.reasons import INDENT, values_read
from tollkeeper.engine.offline.testing.streams import (
    START,
    CreationLine,
    EventLine,
    LabelLine,
    ListLine,
    StreamError,
    StreamLine,
    UpdateLine,
    read_stream,
)
from tollkeeper.engine.programs.active import (
    SCORECARD_NAME,
    ActivePrograms,
    Loaded,
    VersionId,
    choose_programs,
)
from tollkeeper.engine.programs.compile.explain import Inputs
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.engine.programs.load import SHIPPED, load_account
from tollkeeper.engine.registry.changes import (
    AccountCreated,
    AccountSettings,
    Activated,
    Change,
    RecordedChange,
    VersionStored,
)
from tollkeeper.engine.registry.state import Account, Configuration, fold_changes
from tollkeeper.engine.registry.versions import encode_file, store_version
from tollkeeper.engine.velocity.contract import Observation
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.checker import KnownNames as Near
from tollkeeper.grammar.checker.names import SCORE
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.grammar.types import Instant


@dataclass(frozen=True, slots=True)
class Case:
    """A stream, and the files that are active for it."""

    items: Sequence[StreamLine]
    files: Sequence[RuleFile]

    def rules(self) -> list[RuleFile]:
        return [file for file in self.files if isinstance(file.program, Rule)]

    def events(self) -> Events:
        return {name: type_ for file in self.files for name, type_ in file.events.items()}


@dataclass(frozen=True, slots=True)
class CaseDecision:
    """A decided payment; `scorecard` and `rule` are None where none was applied."""

    created: CreationLine
    decision: Decision
    scorecard: Ran | None = None
    rule: Ran | None = None


def load_case(path: Path, library: Library) -> Case:
    """Raises `StreamError`, `BrokenFileError`."""
    paths = sorted(path.parent.parent.glob(f"*{SUFFIX}"))
    return Case(read_stream(path), [load_file(each, library) for each in paths])


def decide_case(case: Case, score: int | None = None) -> list[CaseDecision]:
    """Every payment as each rule decides it, in the order of the stream and then of the rules.

    `score` (hundredths), when given, replaces the scorecard's. Raises `StreamError` for an
    inconsistent stream.
    """
    account = _account(case.files)
    by_default: list[RuleFile | None] = [*case.rules()] or [None]
    compiled = load_account(account, {}).compiled()
    runs = [_run(case, _with_default(account, file), compiled, score) for file in by_default]
    found: list[CaseDecision] = []
    for several in zip(*runs, strict=True):
        named = _rule_name(several[0].created.payment)
        applied = [
            decided
            for file, decided in zip(by_default, several, strict=True)
            if decided.rule is not None and (named is None or decided.rule.file is file)
        ]
        found += applied or several[:1]
    return found


def case_text(case: Case, decided: Sequence[CaseDecision]) -> str:
    """The case as text: each payment with its outcomes and the values that decided, and each
    update."""
    return "\n".join(_lines(case, decided)) + "\n"


def _lines(case: Case, decided: Sequence[CaseDecision]) -> Iterator[str]:
    for item in case.items:
        place = f"{written_value(item.arrived, Instant())}  line {item.line}"
        match item:
            case CreationLine(payment=payment):
                yield f"{place}  payment {payment.id}"
                for each in decided:
                    if each.created is item:
                        yield from _outcome(each)
            case UpdateLine():
                yield f"{place}  update {item.id} to {item.update.status}"
            case LabelLine():
                yield f"{place}  label {item.label.label or 'none'} of {item.id}"
            case EventLine():
                yield f"{place}  event {item.type} {item.id}"
            case ListLine():
                yield f"{place}  list @{item.list}"


def _outcome(decided: CaseDecision) -> Iterator[str]:
    decision, rule = decided.decision, decided.decision.rule
    action = decision.action or "no recommendation"
    name = "no rule" if rule is None else rule.name
    by = f" by {rule.condition}" if rule is not None and rule.condition is not None else ""
    yield f"{INDENT}{name}: {action}{by}, score {written_value(decision.score, SCORE)}"
    if decided.rule is not None and by:
        explained = explained_rule(decided.rule)
        for condition in explained.conditions:
            if condition.name == explained.met:
                values = dict.fromkeys(values_read(condition.when))
                yield from (f"{INDENT * 2}{line}" for line in values)


def _account(files: Iterable[RuleFile]) -> Account:
    """An account that has published these files, and has default settings."""
    changes: list[Change] = [AccountCreated(CASES)]
    nobody = Account(TEST_ACCOUNT, CASES, START)
    for file in files:
        stored = store_version(nobody, encode_file(file.program), file.text, {})
        assert isinstance(stored, VersionStored)
        changes += [stored, Activated(stored.kind, stored.name, stored.number)]
    recorded = (
        RecordedChange(place, START, TEST_ACCOUNT, CASES, change)
        for place, change in enumerate(changes, start=1)
    )
    return fold_changes(Configuration(), recorded).accounts[TEST_ACCOUNT]


def _with_default(account: Account, file: RuleFile | None) -> Account:
    name = None if file is None else file.program.name
    return replace(account, settings=AccountSettings(default_rule=name))


def _run(
    case: Case, account: Account, compiled: Mapping[VersionId, Loaded], score: int | None
) -> list[CaseDecision]:
    contents = empty_contents(file.program for file in case.files)
    active = _with_score(load_account(account, contents, compiled), score)

    def items() -> Iterator[StreamLine]:
        """The items without list entries, which are applied for the items after them."""
        nonlocal contents, active
        for item in case.items:
            if isinstance(item, ListLine):
                contents = _fill_list(contents, item)
                active = _with_score(load_account(account, contents, compiled), score)
            else:
                yield item

    async def judge(windows: Windows, creation: ReplayedCreation) -> tuple[Observation, Decision]:
        if creation.origin.decision is not None:
            line = creation.origin.line
            raise StreamError(f"line {line}: a case decides its payments itself")
        facts = creation.record.state.payment
        facts = structs.replace(facts, payment=with_recommendation(facts.payment))
        programs, thresholds = (
            choose_programs(active, facts.payment, facts.arrived),
            account.settings.thresholds,
        )
        return await analyse(windows, TEST_ACCOUNT, facts, programs, active.environment, thresholds)

    windows = empty_windows(active.plans())
    return [
        _case_decision(case, active, step.happening.origin, step.observed, step.decision)
        for step in replay_live(happenings(items(), case.events()), windows, judge)
        if step.decision is not None
    ]


def _with_score(active: ActivePrograms, score: int | None) -> ActivePrograms:
    if score is None:
        return active
    scorecards = {
        number: replace(scorecard, score=lambda *_read: score)
        for number, scorecard in active.scorecards.items()
    }
    return replace(active, scorecards=scorecards)


def _rule_name(payment: Payment) -> str | None:
    rule = None if payment.analyze is None else payment.analyze.rule
    return None if rule is None else rule.name


def _case_decision(
    case: Case,
    active: ActivePrograms,
    item: CreationLine,
    observed: Observation,
    decision: Decision,
) -> CaseDecision:
    facts, environment = observed.record.state.payment, active.environment
    scorecard, rule, _ = choose_programs(active, facts.payment, facts.arrived)
    if scorecard is None:
        return CaseDecision(item, decision)
    split = len(scorecard.reading.plan.windows)
    own = [file for file in case.files if isinstance(file.program, Scorecard)]
    scored = _ran(
        own[0] if scorecard.version else shipped_file(),
        Inputs(facts, observed.values[:split], environment, decision.score),
    )
    if rule is None:
        return CaseDecision(item, decision, scored)
    assert decision.rule is not None
    file = next(each for each in case.rules() if each.program.name == decision.rule.name)
    inputs = Inputs(facts, observed.values[split:], environment, decision.score)
    return CaseDecision(item, decision, scored, _ran(file, inputs))


def _ran(file: RuleFile, inputs: Inputs) -> Ran:
    assert isinstance(file.program, Rule | Scorecard)
    return Ran(file, file.program, inputs)


@cache
def shipped_file() -> RuleFile:
    """The scorecard of accounts that have none of their own."""
    return load_file(SHIPPED / f"{SCORECARD_NAME}{SUFFIX}", Library(Near(), {}))


def _fill_list(contents: dict[str, Contents], item: ListLine) -> dict[str, Contents]:
    held = contents.get(item.list)
    if held is None:
        raise StreamError(f"line {item.line}: no rule declares a list `@{item.list}`")
    try:
        return {**contents, item.list: with_entries(item.list, held, item.entries)}
    except EntryError as error:
        raise StreamError(f"line {item.line}: {error}") from None
