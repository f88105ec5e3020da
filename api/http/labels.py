"""Labels over HTTP: set, removed and listed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import Problem, as_problem, invalid, invalid_at, not_found
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import (
    Cursor,
    Limit,
    NextCursor,
    PaymentId,
    Since,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.queries import (
    read_choice,
    read_limit,
    read_place,
    read_since,
    read_time,
    show_place,
)
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import LagMs, lag_ms
from tollkeeper.api.http.tags import LABELS
from tollkeeper.api.http.visibility import check_visible, check_visible_payment
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.payment import RequiredText
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.labels.label import (
    SOURCES,
    VERDICTS,
    Label,
    LabelSource,
    Verdict,
    verdict_of,
    verdicts,
)
from tollkeeper.engine.labels.set_label import MAX_LABELS, labels_of, set_label
from tollkeeper.engine.registry.errors import Refused
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.find_labels import FindLabels, LabelPage

_MOST = 1000
"""The most labels in a batch."""
_AT_ONCE = 64
"""The number of labels of a batch that are written at the same time."""

SourceName = Annotated[
    str,
    path_parameter(
        "The source of the label.", "chargeback", {"type": "string", "enum": [*SOURCES]}
    ),
]
Reason: TypeAlias = Annotated[str, Meta(max_length=1000)]


class LabelBody(Struct, frozen=True, forbid_unknown_fields=True):
    """`at` is when the source learned it, by default now; it can't be in the future."""

    label: Verdict
    reason: Reason | None = None
    at: InstantText | None = None


class LabelOfPayment(Struct, frozen=True, forbid_unknown_fields=True):
    """A label in a batch; a `label` of null removes what the source said."""

    payment: RequiredText
    source: LabelSource
    label: Verdict | None
    reason: Reason | None = None
    at: InstantText | None = None


class LabelBatch(Struct, frozen=True, forbid_unknown_fields=True):
    labels: Annotated[tuple[LabelOfPayment, ...], Meta(min_length=1, max_length=_MOST)]


class LabelView(Struct, frozen=True):
    """What a source says about a payment; `by` is the key, command or event that set it."""

    payment: str
    source: LabelSource
    label: Verdict
    reason: str | None
    at: InstantText
    by: str


class LabelAnswer(Struct, frozen=True):
    label: LabelView


class PaymentLabels(Struct, frozen=True):
    """What each source says, and the label that counts: that of the highest-ranking source that is
    sure.
    """

    label: Verdict | None
    labels: list[LabelView]


class LabelList(Struct, frozen=True):
    labels: list[LabelView]
    cursor: NextCursor
    lag_ms: LagMs


class LabelRemoval(Struct, frozen=True):
    """The label that was removed."""

    payment: str
    source: LabelSource


class LabelRemovalAnswer(Struct, frozen=True):
    label: LabelRemoval


class LabelResult(Struct, frozen=True, omit_defaults=True):
    """The result of one label of a batch: 200, or the status and errors that it would get alone."""

    status: int
    errors: tuple[Violation, ...] | UnsetType = UNSET


class LabelResults(Struct, frozen=True):
    labels: list[LabelResult]


@operation(
    "PUT",
    "/v1/payments/{id:str}/labels/{source:str}",
    "set_label",
    tag=LABELS,
    summary="Set a payment's label",
    doc=(
        "Replaces the source's former label. If there are several sources, the first one "
        "that is sure counts, in the order `chargeback`, `early_warning`, `review`, "
        "`customer`, `refund`, `import`; `unsure` counts only while no source is sure. "
        f"A payment's labels change at most {MAX_LABELS} times; setting the same label again "
        "changes nothing."
    ),
    scope="labels:write",
    of_merchants=True,
    sent=Body(
        LabelBody,
        {"fraud": Example("a chargeback", {"label": "fraud", "reason": "card not present"})},
    ),
    answers={200: Answer("The label, on disk.")},
    refusals=(404, 422, 503),
)
async def put_label(request: Request, id_: PaymentId, source: SourceName) -> LabelAnswer:
    await check_visible(request, id_)
    sent = await read_json(request, LabelBody)
    label = _label(request, _source(source), sent.label, sent.reason, sent.at)
    await set_label(request.engine, request.key.account, id_, label)
    return LabelAnswer(label_view(id_, label))


@operation(
    "DELETE",
    "/v1/payments/{id:str}/labels/{source:str}",
    "remove_label",
    tag=LABELS,
    summary="Remove a label",
    doc=(
        "For example when a dispute is won. Questions about the past still get the label as "
        "it was known then."
    ),
    scope="labels:write",
    of_merchants=True,
    answers={200: Answer("The label is removed, on disk.")},
    refusals=(404, 422, 503),
)
async def remove_label(request: Request, id_: PaymentId, source: SourceName) -> LabelRemovalAnswer:
    await check_visible(request, id_)
    label = _label(request, _source(source), None, None, None)
    if not await set_label(request.engine, request.key.account, id_, label):
        raise not_found("source", "the payment has no label of this source")
    return LabelRemovalAnswer(LabelRemoval(id_, label.source))


@operation(
    "GET",
    "/v1/payments/{id:str}/labels",
    "read_labels",
    tag=LABELS,
    summary="Read a payment's labels",
    doc="The current label of each source.",
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The labels.")},
    refusals=(404, 503),
)
async def read_labels(request: Request, id_: PaymentId) -> PaymentLabels:
    await check_visible_payment(request, id_)
    labels = await labels_of(request.engine, request.key.account, id_)
    views = [label_view(id_, labels[source]) for source in SOURCES if source in labels]
    return PaymentLabels(verdict_of(verdicts(labels)), views)


@operation(
    "POST",
    "/v1/labels",
    "set_labels",
    tag=LABELS,
    summary="Set labels of many payments",
    doc=f"Up to {_MOST} labels, each stored or refused independently, in the order sent.",
    scope="labels:write",
    sent=Body(
        LabelBatch,
        {
            "batch": Example(
                "two chargebacks, one of them won",
                {
                    "labels": [
                        {"payment": "order-1001-1", "source": "chargeback", "label": "fraud"},
                        {"payment": "order-1002-1", "source": "chargeback", "label": None},
                    ]
                },
            )
        },
    ),
    answers={200: Answer("The result of each, in order.")},
    refusals=(422, 503),
)
async def set_labels(request: Request) -> LabelResults:
    batch = (await read_json(request, LabelBatch)).labels
    wrong: list[Violation] = []
    labels: list[Label] = []
    for index, each in enumerate(batch):
        try:
            labels.append(_label(request, each.source, each.label, each.reason, each.at))
        except Problem as problem:
            wrong += _place_within(f"labels[{index}]", problem.violations)
    if wrong:
        raise invalid(wrong)
    results: list[LabelResult] = []
    for start in range(0, len(batch), _AT_ONCE):
        several = zip(
            batch[start : start + _AT_ONCE], labels[start : start + _AT_ONCE], strict=True
        )
        results += await asyncio.gather(
            *(
                _result(request.engine, request.key.account, sent.payment, label)
                for sent, label in several
            )
        )
    return LabelResults(results)


@operation(
    "GET",
    "/v1/labels",
    "list_labels",
    tag=LABELS,
    summary="List labels, newest first",
    doc="The current labels of payments, in the order in which they were set.",
    scope="payments:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def list_labels(
    request: Request,
    since: Since = None,
    source: Annotated[
        str | None,
        query_parameter("Only labels of this source.", {"type": "string", "enum": [*SOURCES]}),
    ] = None,
    label: Annotated[
        str | None,
        query_parameter("Only this label.", {"type": "string", "enum": [*VERDICTS]}),
    ] = None,
    cursor: Cursor = None,
    limit: Limit = None,
) -> LabelList:
    question = FindLabels(
        read_since(request, since),
        read_choice("source", source, SOURCES),
        read_choice("label", label, VERDICTS),
        read_place(request, "cursor", cursor),
        read_limit(limit),
    )
    page, lag = await request.search.ask(request.key.account, question, LabelPage)
    views = [label_view(each.payment, each.label) for each in page.labels]
    return LabelList(views, show_place(request, page.cursor), lag_ms(lag))


ROUTES = (put_label, remove_label, read_labels, set_labels, list_labels)


def _source(text: str) -> LabelSource:
    for source in SOURCES:
        if source == text:
            return source
    known = ", ".join(f"`{source}`" for source in SOURCES)
    raise not_found("source", f"there is no source `{text}` of labels; there is {known}")


def _label(
    request: Request, source: LabelSource, label: Verdict | None, reason: str | None, at: str | None
) -> Label:
    """Make a label. Raises `Problem` 422 for an invalid or future time."""
    now = request.engine.clock()
    label_time = now if at is None else read_time("at", at)
    if label_time > now:
        raise invalid_at("at", "timestamp_future", "`at` is in the future")
    return Label(source, label, label_time, request.key.id, reason)


async def _result(engine: Engine, account: int, payment: str, label: Label) -> LabelResult:
    try:
        await set_label(engine, account, payment, label)
    except (Refused, JournalError) as error:
        problem = as_problem(error)
        assert problem is not None
        return LabelResult(int(problem.status), tuple(problem.violations))
    return LabelResult(int(HTTPStatus.OK))


def label_view(payment: str, label: Label) -> LabelView:
    assert label.label is not None
    return LabelView(
        payment, label.source, label.label, label.reason, show_instant(label.at), label.by
    )


def _place_within(place: str, violations: Sequence[Violation]) -> list[Violation]:
    return [replace(each, field=f"{place}.{each.field}") for each in violations]
