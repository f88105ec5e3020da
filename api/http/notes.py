"""`/v1/payments/{id}/notes`: notes that people write about a payment for each other."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import LINES, PaymentId
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.api.http.visibility import check_visible, check_visible_payment
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.labels.notes import MAX_NOTE, PaymentNote, add_note, notes_of


class SentNote(Struct, frozen=True, forbid_unknown_fields=True):
    """One or more lines."""

    text: Annotated[
        str, Meta(min_length=1, max_length=MAX_NOTE, extra_json_schema={"pattern": LINES})
    ]


class NoteBody(Struct, frozen=True, forbid_unknown_fields=True):
    note: SentNote


class NoteView(Struct, frozen=True):
    text: str
    at: InstantText
    by: str


class NoteAnswer(Struct, frozen=True):
    note: NoteView


class NoteList(Struct, frozen=True):
    notes: list[NoteView]


@operation(
    "GET",
    "/v1/payments/{id:str}/notes",
    "list_notes",
    tag=PAYMENTS,
    summary="Read a payment's notes",
    doc="Oldest first. They are removed with the payment, and when the person is erased.",
    scope="personal:read",
    of_merchants=True,
    answers={200: Answer("All of them.")},
    refusals=(404, 503),
)
async def list_notes(request: Request, id_: PaymentId) -> NoteList:
    await check_visible_payment(request, id_)
    notes = await notes_of(request.engine, request.key.account, id_)
    return NoteList([_note_view(note) for note in notes])


@operation(
    "POST",
    "/v1/payments/{id:str}/notes",
    "add_note",
    tag=PAYMENTS,
    summary="Write a note about a payment",
    doc=(
        "For whoever looks at it next: a note is not a label, and rules can't read it. It "
        "can't be changed."
    ),
    scope="labels:write",
    of_merchants=True,
    sent=Body(NoteBody, {"called": Example("a note", {"note": {"text": "called, no answer"}})}),
    answers={201: Answer("The note, on disk.", NoteAnswer)},
    refusals=(404, 409, 503),
)
async def post_note(request: Request, id_: PaymentId) -> NoteAnswer:
    await check_visible(request, id_)
    text = (await read_json(request, NoteBody)).note.text
    key = request.key
    return NoteAnswer(_note_view(await add_note(request.engine, key.account, id_, key.id, text)))


def _note_view(note: PaymentNote) -> NoteView:
    return NoteView(note.text, show_instant(note.at), note.by)


ROUTES = (list_notes, post_note)
