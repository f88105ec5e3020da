"""`/v1/checks` and `/v1/vocabulary`: check a text before it is stored, and list the names that it
may use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.disconnect import run_while_connected
from tollkeeper.api.http.errors import invalid_at
from tollkeeper.api.http.examples import RULE
from tollkeeper.api.http.file_kinds import NOUN_OF, FileNoun
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import FLAG, query_parameter
from tollkeeper.api.http.proofs import ProofView, proof_view
from tollkeeper.api.http.queries import read_flag
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import RULES
from tollkeeper.engine.lists.spec import ColumnType, EntryType, Lookup, TableSpec
from tollkeeper.engine.offline.check_text import (
    CheckedCoverage,
    CheckedTest,
    CheckedText,
    NeededWindow,
    check_text,
    differences_from,
)
from tollkeeper.engine.offline.jobs.jobs import JobExceededError
from tollkeeper.engine.offline.testing.files import Library, read_library, stored_library
from tollkeeper.engine.programs.compile.shown import one_line, shown_duration
from tollkeeper.engine.programs.reference import every_name
from tollkeeper.engine.publish.diff import Difference
from tollkeeper.engine.publish.needs import unmet_needs
from tollkeeper.engine.registry.known import StoredNames
from tollkeeper.engine.registry.versions import active_version
from tollkeeper.engine.velocity.contract import SeriesPlan
from tollkeeper.grammar import program as p
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import keywords
from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.words import type_in_words

CHECK_SECONDS = 10.0
"""The time limit for checking and testing one text."""


class CheckBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A text, of any kind of file."""

    text: str


class SpanView(Struct, frozen=True):
    """Lines and characters count from 1; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class TextEdit(Struct, frozen=True):
    """The text at `span` is replaced by `replacement`; an empty span marks where to insert it."""

    span: SpanView
    replacement: str


class FoundDiagnostic(Struct, frozen=True, omit_defaults=True):
    """One finding. `fix`, if one is known, is a set of edits to apply together."""

    code: str
    severity: Literal["error", "warning"]
    message: str
    span: SpanView
    help: str | None = None
    fix: list[TextEdit] = []


class UnmetView(Struct, frozen=True):
    """What a test expected, what happened, and why, line by line."""

    line: int
    expected: str
    came_out: str
    reasons: tuple[str, ...]


class TestView(Struct, frozen=True):
    """A test in the text. `error` says why it could not be run: tests that need another file run
    only with `toll test`.
    """

    title: str
    span: SpanView
    passed: bool
    failures: list[UnmetView]
    error: str | None

    __test__ = False


class MissedView(Struct, frozen=True):
    """What no test met, refused, or made a difference to."""

    within: Annotated[str, Meta(description="The condition, signal, monitor or let.")]
    seen: Literal["met", "refused", "mattered"]
    text: str
    span: SpanView


class CoverageView(Struct, frozen=True):
    """The percentage of `goals` that tests reached, and those that they did not."""

    percent: float
    goals: int
    missed: list[MissedView]


class WindowView(Struct, frozen=True):
    """An aggregate over history. `over` is its span as written in a rule, null for all of history;
    `held` is true if the account's windows have it already, so that it costs nothing more.
    """

    text: str
    over: str | None
    held: bool


class ProofsView(Struct, frozen=True):
    """The proofs about the rule, preceded by its differences from the active version of the same
    name; `complete` is false if time ran out before all of them, and `untried` are the `must` lines
    that were not tried then.
    """

    proofs: list[ProofView]
    complete: bool
    untried: tuple[str, ...]


class CheckAnswer(Struct, frozen=True):
    """`kind` and `name` are those that the text declares, null if it has errors. `formatted` is the
    formatted text, null if it has syntax errors; `coverage` is null if there is nothing to cover.
    `differences` are those in meaning from the active version of the same name, null if there is
    none. `proofs` are included if requested.
    """

    kind: FileNoun | None
    name: str | None
    diagnostics: list[FoundDiagnostic]
    formatted: str | None
    tests: list[TestView]
    coverage: CoverageView | None
    windows: list[WindowView]
    differences: tuple[Difference, ...] | None = None
    proofs: ProofsView | UnsetType = UNSET


class NameView(Struct, frozen=True):
    """A name as written in a rule, with its type and meaning. `choices` are the possible strings,
    if they are limited.
    """

    name: str
    type: str
    doc: str
    choices: tuple[str, ...]


class ListNameView(Struct, frozen=True):
    name: str
    type: EntryType


class TableNameView(Struct, frozen=True):
    name: str
    by: Lookup
    columns: dict[str, ColumnType]


class DefinedName(Struct, frozen=True):
    """A let of a published definitions file of the account, with its text."""

    definitions: str
    name: str
    type: str
    text: str


class MetricName(Struct, frozen=True):
    """`keys` are the types of the keys in brackets."""

    name: str
    type: str
    keys: list[str]


class EventTypeNames(Struct, frozen=True):
    name: str
    fields: dict[str, str]
    metrics: list[MetricName]


class VocabularyAnswer(Struct, frozen=True):
    """All names that a text of the account can use: the language's own words and names, and the
    account's lists, tables, definitions and event types.
    """

    keywords: list[str]
    names: list[NameView]
    lists: list[ListNameView]
    tables: list[TableNameView]
    defined: list[DefinedName]
    event_types: list[EventTypeNames]


@operation(
    "POST",
    "/v1/checks",
    "check_text",
    tag=RULES,
    summary="Check a text and run its tests; nothing is stored",
    doc=(
        "The diagnostics that storing the text as a version would give, warnings included, "
        "with fixes where known; the formatted text; each test, and what the tests did not "
        "cover; the aggregates over history that it needs.\n\n"
        "It is checked against the account's published definitions and event types and its "
        "lists. With `prove=true`, a rule is also proved: which conditions a payment can "
        "reach and meet, whether each `must` holds, and how the rule differs from the "
        "active version of the same name, each with an example payment. A text that takes "
        f"longer than {CHECK_SECONDS:g} seconds is refused."
    ),
    scope="rules:read",
    sent=Body(CheckBody, {"rule": Example("a small rule", {"text": RULE})}),
    answers={200: Answer("The diagnostics, and what is known of the text.")},
    refusals=(422, 503),
)
async def check(
    request: Request,
    prove: Annotated[
        str | None, query_parameter("Whether to prove what the rule can and must do.", FLAG)
    ] = None,
) -> CheckAnswer:
    is_to_prove = read_flag("prove", prove)
    if is_to_prove and find_spec("z3") is None:
        message = "this service has no solver: it was installed without the extra `prove`"
        raise invalid_at("prove", "invalid_value", message)
    sent = await read_json(request, CheckBody)
    key, library = request.key, stored_library(request.account)
    content = sent.text.encode("utf-8", "surrogatepass")
    differences: tuple[Difference, ...] | None = None
    try:
        found = await request.jobs.brief(key.account, CHECK_SECONDS, check_text, content, library)
        active = (
            found.name and found.kind and active_version(request.account, found.kind, found.name)
        )
        if active:
            differences = await request.jobs.brief(
                key.account, CHECK_SECONDS, differences_from, content, library, active
            )
    except JobExceededError as error:
        raise invalid_at("text", "out_of_range", f"checking it: {error}") from None
    in_use = request.engine.active[key.account]
    unmet = unmet_needs(found.needs, in_use)
    found = found._replace(diagnostics=(*found.diagnostics, *unmet))
    answer = await asyncio.to_thread(_answer, found, sent.text, in_use.plans())
    answer = replace(answer, differences=differences)
    if not (is_to_prove and found.kind == "rule" and found.name is not None):
        return answer
    return replace(answer, proofs=await _prove(request, content, library.names, found.name))


async def _prove(request: Request, content: bytes, names: StoredNames, name: str) -> ProofsView:
    from tollkeeper.engine.offline.prove.prove_text import PROOFS_S, prove_text

    account = request.account
    active = active_version(account, "rule", name)
    try:
        proving = request.jobs.brief(
            account.number,
            PROOFS_S,
            prove_text,
            content,
            names,
            None if active is None else active.program,
            account.settings.thresholds,
        )
        found = await run_while_connected(request, proving)
    except JobExceededError as error:
        raise invalid_at("prove", "out_of_range", f"proving it: {error}") from None
    return ProofsView([proof_view(each) for each in found.proofs], found.complete, found.untried)


@operation(
    "GET",
    "/v1/vocabulary",
    "read_vocabulary",
    tag=RULES,
    summary="List what a text can name",
    doc=("For an editor: the language's words, fields and functions, and the account's own names."),
    scope="rules:read",
    answers={200: Answer("All names.")},
)
async def read_vocabulary(request: Request) -> VocabularyAnswer:
    account = request.account
    # In a thread: the first call computes it, which takes long enough to delay other requests.
    words, names = await asyncio.to_thread(_language)
    library = await asyncio.to_thread(read_library, stored_library(account))
    specs = sorted((name, held.spec) for name, held in account.lists.items())
    return VocabularyAnswer(
        keywords=words,
        names=names,
        lists=[
            ListNameView(name, spec.type) for name, spec in specs if not isinstance(spec, TableSpec)
        ],
        tables=[
            TableNameView(name, spec.by, spec.columns)
            for name, spec in specs
            if isinstance(spec, TableSpec)
        ],
        defined=list(_defined_names(library)),
        event_types=[
            _event_type(each) for each in library.known.events.values() if each is not None
        ],
    )


@cache
def _language() -> tuple[list[str], list[NameView]]:
    """Return the words and names that every account has."""
    names = [NameView(each.name, each.type, each.doc, each.choices) for each in every_name()]
    return sorted(keywords()), names


ROUTES = (check, read_vocabulary)


def _answer(found: CheckedText, text: str, plans: Sequence[SeriesPlan]) -> CheckAnswer:
    source = Source.of(found.name or "", text)
    return CheckAnswer(
        kind=None if found.kind is None else NOUN_OF[found.kind],
        name=found.name,
        diagnostics=[_diagnostic(source, each) for each in found.diagnostics],
        formatted=found.formatted,
        tests=[_test(source, each) for each in found.tests],
        coverage=None if found.coverage is None else _coverage(source, found.coverage),
        windows=[_window(each, plans) for each in found.windows],
    )


def _place(source: Source, span: Span) -> SpanView:
    start, end = (source.position(offset) for offset in span)
    return SpanView(start.line, start.column, end.line, end.column)


def _diagnostic(source: Source, found: Diagnostic) -> FoundDiagnostic:
    fix = found.fixes[0].edits if found.fixes else ()
    return FoundDiagnostic(
        code=found.code,
        severity=found.severity,
        message=found.message,
        span=_place(source, found.span),
        help=found.help,
        fix=[TextEdit(_place(source, edit.span), edit.replacement) for edit in fix],
    )


def _test(source: Source, test: CheckedTest) -> TestView:
    failures = [
        UnmetView(each.line, each.expected, each.came_out, each.reasons) for each in test.failures
    ]
    passed = not failures and test.error is None
    return TestView(test.title, _place(source, test.span), passed, failures, test.error)


def _coverage(source: Source, found: CheckedCoverage) -> CoverageView | None:
    if not found.goals:
        return None
    missed = [
        MissedView(
            goal.name,
            goal.mark.seen,
            one_line(source.text[goal.span.start : goal.span.end]),
            _place(source, goal.span),
        )
        for goal in sorted(found.missed, key=lambda goal: goal.span)
    ]
    return CoverageView(round(found.percent, 1), found.goals, missed)


def _window(needed: NeededWindow, plans: Sequence[SeriesPlan]) -> WindowView:
    over = None if needed.over is None else shown_duration(needed.over)
    return WindowView(needed.text, over, any(_holds(plan, needed) for plan in plans))


def _holds(plan: SeriesPlan, needed: NeededWindow) -> bool:
    if plan.digest != needed.series:
        return False
    if needed.over is None:
        return plan.ages
    return plan.over is not None and plan.over >= needed.over


def _defined_names(library: Library) -> Iterator[DefinedName]:
    for name, definitions in library.known.definitions.items():
        if definitions is None:
            continue
        for let in definitions.lets:
            text = library.texts.get(let.source or name, "")
            written = one_line(text[let.value.span.start : let.value.span.end])
            yield DefinedName(name, let.name, type_in_words(let.value.type), written)


def _event_type(event: p.EventType) -> EventTypeNames:
    return EventTypeNames(
        event.name,
        {field.name: type_in_words(field.type) for field in event.fields},
        [
            MetricName(
                metric.name,
                type_in_words(metric.history.type),
                [type_in_words(key.type) for key in metric.history.series.by],
            )
            for metric in event.metrics
        ],
    )
