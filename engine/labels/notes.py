"""Notes that people write about a payment for each other; rules don't read them."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.keep import keep_uncounted
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.runtime import Engine

MAX_NOTE = 1000
"""The most characters of a note."""
MAX_NOTES = 100
"""The most notes of a payment."""


class PaymentNote(Struct, frozen=True):
    """The body of an entry of kind `NOTE`; its id is the payment's. `at` in µs."""

    text: str
    at: int
    by: str


encode_note = msgspec.json.Encoder().encode
decode_note = msgspec.json.Decoder(PaymentNote).decode


async def add_note(
    engine: Engine, account: int, payment_id: str, by: str, text: str
) -> PaymentNote:
    """Add a note; returns once it is on disk.

    Raises `Invalid` for an empty or malformed text, `NotFound` when no payment has the id,
    `Conflict` when it has too many notes, and `JournalError`.
    """
    lines = text.splitlines()
    if not text.strip() or len(text) > MAX_NOTE or not all(map(str.isprintable, lines)):
        message = f"a note has 1 to {MAX_NOTE} characters, none of them a control"
        raise Invalid.at("note.text", "invalid_format", message)
    if not await engine.journal.exists(account, Kind.PAYMENT, payment_id):
        raise NotFound("id", "no payment has this id")
    if len(await notes_of(engine, account, payment_id)) >= MAX_NOTES:
        raise Conflict("note", f"a payment has at most {MAX_NOTES} notes")
    now = engine.clock()
    note = PaymentNote(text, now, by)
    await keep_uncounted(engine, account, Kind.NOTE, payment_id, now, encode_note(note))
    return note


async def notes_of(engine: Engine, account: int, payment_id: str) -> list[PaymentNote]:
    """The notes about a payment, oldest first."""
    entries = await engine.journal.of_record(account, Kind.NOTE, payment_id)
    return [decode_note(entry.body) for entry in entries]
