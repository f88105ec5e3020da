"""The facts that expressions read, and a decoder of stored payments that skips all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, defstruct, inspect

from tollkeeper.engine.facts.facts import StoredFacts
from tollkeeper.engine.facts.vocabulary import bare_type
from tollkeeper.engine.intake.addresses import address_number, public_number
from tollkeeper.engine.intake.payment import Transaction
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.grammar import program as p
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.grammar.walk import parts

Access: TypeAlias = tuple[str, ...]
"""The attributes that lead from facts to a field (grammar/vocabulary.py)."""

DEVICE_ADDRESS = ("payment", "device", "ip_address")
BACKEND_ADDRESS = ("payment", "backend", "ip_address")
# Facts that are derived from one field alone (facts.py).
_SOURCE_FIELDS: Mapping[Access, Access] = {
    ("amount",): ("payment", "amount"),
    ("device_ip",): DEVICE_ADDRESS,
    ("backend_ip",): BACKEND_ADDRESS,
}
_ENTRY_FACTS = (("timestamp",), ("arrived",))
ENTRY_SETS: tuple[str, Any, Any] = ("entry_sets", Any, msgspec.field(default_factory=dict))
"""The member of facts that programs fill, as a struct's field."""
_DERIVED: tuple[tuple[str, Any, Any], ...] = (
    ("arrived", int, 0),
    ("timestamp", int, 0),
    ("amount", int | None, None),
    ("device_ip", int | None, None),
    ("backend_ip", int | None, None),
    ENTRY_SETS,
)


def facts_read(
    expressions: Iterable[p.Expression], lets: Sequence[p.Let], vocabulary: Vocabulary
) -> frozenset[Access]:
    """The facts that the expressions read, of the payment or of one in history.

    A let's facts count only if one of the expressions reads the let.
    """
    fields = vocabulary.payment
    found: set[Access] = set()
    for part in parts_read(expressions, lets):
        match part:
            case p.Fact():
                found.add(fields[".".join(part.path)].access)
            case p.HeaderFact():
                found.add(fields[f"{part.side}.headers"].access)
            case p.MetadataFact():
                found.add(fields["metadata"].access)
            case p.Call(function="amount_in"):
                found |= {fields["amount"].access, fields["currency"].access}
            case p.Fold() | p.History(series=p.Series(collection="transactions")):
                found.add(fields["transactions"].access)
            case _:
                pass
    return frozenset(found)


def parts_read(
    expressions: Iterable[p.Expression], lets: Sequence[p.Let]
) -> Iterator[p.Expression]:
    """Every part of the expressions and of the lets that they read, each let once."""
    waiting, seen = list(expressions), set[int]()
    while waiting:
        for part in parts(waiting.pop()):
            if isinstance(part, p.LetValue) and part.index not in seen:
                seen.add(part.index)
                waiting.append(lets[part.index].value)
            yield part


def parts_of_series(series: p.Series) -> list[p.Expression]:
    return [*series.by, *(part for part in (series.where, series.value) if part is not None)]


def facts_of_series(
    series: p.Series, lets: Sequence[p.Let], vocabulary: Vocabulary
) -> frozenset[Access]:
    """The facts that a series reads of a record; `lets` are those of its program."""
    read = facts_read(parts_of_series(series), lets, vocabulary)
    if series.collection == "transactions":
        read |= {vocabulary.payment["transactions"].access}
    return read


def facts_decoder(wanted: Iterable[Access]) -> Callable[[Entry], Any]:
    """A function that decodes a stored payment's facts, with the wanted fields only.

    The result is read like `Facts`; attributes that were not wanted do not exist.
    """
    paths = {_SOURCE_FIELDS.get(access, access) for access in wanted if access not in _ENTRY_FACTS}
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(
        _partial(_stored_facts(), paths, _DERIVED)
    ).decode
    priced = ("payment", "amount") in paths
    by_device, by_backend = DEVICE_ADDRESS in paths, BACKEND_ADDRESS in paths

    def facts_of(entry: Entry) -> Any:
        facts = decode(entry.body)
        facts.arrived, facts.timestamp = entry.arrived, entry.time
        if priced and (amount := facts.payment.amount) is not None:
            facts.amount = round(amount * 100)
        if by_device and (device := facts.payment.device) is not None and device.ip_address:
            facts.device_ip = address_number(device.ip_address)
        if by_backend and (backend := facts.payment.backend) is not None and backend.ip_address:
            facts.backend_ip = public_number(backend.ip_address)
        return facts

    return facts_of


@cache
def _stored_facts() -> inspect.StructType:
    described = inspect.type_info(StoredFacts)
    assert isinstance(described, inspect.StructType)
    return described


def _partial(
    described: inspect.StructType,
    paths: Iterable[Access],
    more: Iterable[tuple[str, Any, Any]] = (),
) -> type[Struct]:
    """A struct with only the fields on the paths; a field at the end of a path keeps its type."""
    inner: dict[str, set[Access]] = {}
    for name, *rest in paths:
        inner.setdefault(name, set()).update([tuple(rest)] if rest else [])
    fields = [
        (field.name, *_field(field.type, inner[field.name]))
        for field in described.fields
        if field.name in inner
    ]
    return defstruct(f"Partial{described.cls.__name__}", [*fields, *more], gc=False)


def _field(described: inspect.Type, paths: set[Access]) -> tuple[Any, Any]:
    """The type to decode, and its default."""
    bare, _, _ = bare_type(described)
    match bare:
        case inspect.StructType():
            return _partial(bare, paths) | None, None
        case inspect.VarTupleType():
            return tuple[Transaction, ...], ()
        case _:
            return Any, None
