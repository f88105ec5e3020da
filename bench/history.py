"""Stored payments as a service would have stored them, put into its journal without deciding them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from uuid import UUID

import msgspec

from tollkeeper.bench.payments import payment
from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import derive, record
from tollkeeper.engine.instants import from_microseconds, now, to_microseconds
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.stored_records import encode_stored

USERS = 200_000
BINS = 900
A_SECOND = 6
BATCH = 20_000
INSERT = f"INSERT INTO journal ({reads.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

INSTANT = datetime(2025, 1, 1, 12, 30, 45, 123456, tzinfo=UTC)
ID, USER, DEVICE, ADDRESS = "stored-payment", "stored-user", "stored-device", "203.0.113.199"
BIN, LAST_FOUR = "49753186", "8642"
OUTCOME = encode_stored(
    Decision(action="allow", score=2, rule=AppliedRule("web_checkout", 1), reads=(1, 1, 12990) * 9)
)


def fill(folder: Path, payments: int) -> None:
    """Store so many payments of the folder's first account, the newest of them now."""
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        (last,) = connection.execute("SELECT max(place) FROM journal").fetchone()
        rows = stored_entries(last + 1, payments, now())
        while batch := list(islice(rows, BATCH)):
            connection.execute("BEGIN")
            connection.executemany(INSERT, batch)
            connection.execute("COMMIT")


def stored_entries(
    first: int, payments: int, end: int, a_second: float = A_SECOND
) -> Iterator[Entry]:
    """Yield entries from the sequence number `first` on, so many a second up to `end`, in µs."""
    random, pattern = Random(7), template()
    for number in range(payments):
        arrived = end - int((payments - number) * 1_000_000 // a_second)
        user = random.randrange(USERS)
        id_ = stored_id(number)
        values = {
            ID: id_,
            USER: f"u-{user}",
            DEVICE: f"d-{user}",
            ADDRESS: f"203.{user % 200}.{user % 113}.{user % 199}",
            BIN: f"4{user % BINS:07}",
            LAST_FOUR: f"{user % 10_000:04}",
            json_instant(INSTANT): json_instant(from_microseconds(arrived)),
        }
        text = pattern
        for mark, value in values.items():
            text = text.replace(mark, value)
        yield Entry(first + number, 1, Kind.PAYMENT, id_, arrived, arrived, text.encode(), OUTCOME)


def stored_id(number: int) -> str:
    """Return the id of a stored payment: random like the service's, but derived from its number."""
    return str(UUID(int=Random(number).getrandbits(128), version=4))


def template() -> str:
    """Return a payment as the journal stores it, with marks where payments differ."""
    sent = payment(Random(1))
    sent["id"] = ID
    sent["user"] = {"id": USER, "email": f"{USER}@mail.example"}
    sent["device"]["ip_address"] = ADDRESS
    sent["device"]["fingerprint"]["id"] = DEVICE
    sent["method"]["card"] |= {"bin": BIN, "last_four": LAST_FOUR}
    arrived = to_microseconds(INSTANT)
    read = read_creation(msgspec.json.encode({"payment": sent}), arrived)
    assert isinstance(read, Payment), read
    return encode_stored(record(derive(read, arrived, Clients()))).decode()


def json_instant(instant: datetime) -> str:
    """Return an instant as JSON text."""
    return str(msgspec.to_builtins(instant))
