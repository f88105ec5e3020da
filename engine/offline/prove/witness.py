"""Convert an assignment of the solver to a payment that the engine can decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import msgspec
import z3
from msgspec.structs import replace

from tollkeeper.engine.facts.clients import Client, read_client
from tollkeeper.engine.facts.facts import Facts, derive
from tollkeeper.engine.instants import from_microseconds, to_microseconds
from tollkeeper.engine.intake.addresses import is_private
from tollkeeper.engine.intake.limits import Limits
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.payment import CARD_FINGERPRINT
from tollkeeper.engine.offline.prove.terms import Formula, SmtTerm, text_value
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.syntax import Span

NOON = 1_767_268_800_000_000
"""The time of a payment (µs) if it doesn't matter: 1 January 2026, 12:00 UTC."""
_AT_ANY_TIME = Limits(backfill=10**18, clock_skew=10**18)
_NOWHERE = Span(0, 0)
_ATTEMPT = {"status": "failed", "connector": {"id": "c"}}
_REQUIRED = {
    ("type",): "purchase",
    ("status",): "initiated",
    ("currency",): "EUR",
    ("method", "type"): "card",
    ("method", "card", "network"): "visa",
    ("method", "card", "presence"): "card_not_present",
    ("merchant", "id"): "m",
    ("device", "fingerprint", "id"): "d",
    ("device", "fingerprint", "provider"): "basic",
}
"""The values of required fields that the question doesn't read."""
_ENTRIES: Mapping[int, tuple[t.Type, Value]] = {
    1: (t.Boolean(), True),
    2: (t.Number(0), 1),
    3: (t.String(), "a"),
}
"""The value of a metadata entry, by its kind, if only its presence is read."""


@dataclass(frozen=True, slots=True)
class EntrySet:
    """A list of exact values."""

    values: frozenset[Value]

    def contains(self, value: Value, at: int) -> bool:  # noqa: ARG002 - nothing expires here
        return value in self.values


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of exact keys."""

    rows: Mapping[Value, Mapping[str, Value | None]]

    def find(self, key: Value, at: int) -> Mapping[str, Value | None] | None:  # noqa: ARG002
        return self.rows.get(key)


@dataclass(frozen=True, slots=True)
class Witness:
    """A payment with everything that decides it: `values` are the aggregates over history by
    digest.

    `fields` are the payment's fields that matter, by their names in a rule, as a test gives them.
    """

    facts: Facts
    score: int | None
    values: Mapping[str, Value | None]
    environment: Environment
    fields: Mapping[str, p.GivenValue] = field(default_factory=dict)
    lists: Mapping[str, tuple[tuple[t.Type, Value], ...]] = field(default_factory=dict)


class ImpossibleError(Exception):
    """No payment can have what the assignment says."""


class WitnessReader:
    """Reads values from one assignment."""

    def __init__(self, model: Formula) -> None:
        self._model = model

    def holds(self, formula: Formula) -> bool:
        return bool(z3.is_true(self._model.eval(formula, model_completion=True)))

    def value(self, term: SmtTerm) -> Value | None:
        return self.of(term.value, term.type) if self.holds(term.there) else None

    def of(self, formula: Formula, kind: t.Type) -> Value:
        """Raises `ImpossibleError` for a real number that is not a double."""
        found = self._model.eval(formula, model_completion=True)
        match kind:
            case t.Boolean():
                return bool(z3.is_true(found))
            case t.Number(scale=None):
                return _double(found)
            case t.String(choices=None):
                return text_value(found)
            case t.String(choices=choices):
                assert choices is not None
                return str(choices[found.as_long()])
            case _:
                return int(found.as_long())

    def number(self, formula: Formula) -> int:
        return int(self._model.eval(formula, model_completion=True).as_long())

    def nearest_double(self, formula: Formula) -> float:
        """Return the nearest double of a real number. Raises `ImpossibleError` out of range."""
        return _nearest_double(_fraction(self._model.eval(formula, model_completion=True)))


def _double(found: Formula) -> float:
    exact = _fraction(found)
    value = _nearest_double(exact)
    if Fraction(value) != exact:
        raise ImpossibleError("a number between two doubles")
    return value


def _nearest_double(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        raise ImpossibleError("a number beyond all doubles") from None


def _fraction(found: Formula) -> Fraction:
    if z3.is_algebraic_value(found):
        found = found.approx(20)
    return Fraction(found.numerator_as_long(), found.denominator_as_long())


def witness_of(encoder: Encoder, reader: WitnessReader) -> Witness:
    """Return the payment of an assignment. Raises `ImpossibleError`."""
    source = encoder.source
    fields: dict[str, p.GivenValue] = {}
    body: dict[str, Any] = {}
    clients: dict[str, dict[str, Any] | None] = {}
    for path, term in source.fields.items():
        if path == CARD_FINGERPRINT or isinstance(term.type, t.Collection):
            continue
        if not reader.holds(term.there):
            if path[1:] == ("client",):
                clients[path[0]] = None
            continue
        if path[1:] == ("client",):
            clients[path[0]] = {}
            continue
        if path[1:2] == ("client",):
            members = clients[path[0]]
            assert members is not None
            members[path[2]] = reader.of(term.value, term.type)
            fields[".".join(path)] = _given_field(path, term.type, members[path[2]])
            continue
        if isinstance(term.type, t.Record | t.Headers | t.Metadata):
            _put(body, path, {})
            continue
        value = reader.of(term.value, term.type)
        fields[".".join(path)] = _given_field(path, term.type, value)
        _put(body, path, as_sent(value, term.type))
    _put_headers(source.headers, reader, body, fields)
    _put_metadata(encoder, reader, body, fields)
    moment = body.setdefault("timestamp", from_microseconds(NOON))
    body["transactions"] = _transactions(encoder, reader, moment)
    _fill_required(body)
    facts = _facts(body, clients)
    lists, environment = _environment(encoder, reader)
    score = encoder.score
    return Witness(
        facts=facts,
        score=None if score is None else int(reader.of(score.value, score.type)),
        values={
            digest: reader.value(SmtTerm(term.there, term.value, term.type))
            for digest, (_, term, _) in encoder.histories.items()
        },
        environment=environment,
        fields=fields,
        lists=lists,
    )


def _given_field(path: tuple[str, ...], kind: t.Type, value: Value) -> p.GivenValue:
    return _given(p.Fact(0, _NOWHERE, kind, path), value)


def _given_entry(key: str, kind: t.Type, value: Value) -> p.GivenValue:
    return _given(p.MetadataFact(0, _NOWHERE, kind, key), value)


def _given(target: p.Fact | p.HeaderFact | p.MetadataFact, value: Value) -> p.GivenValue:
    return p.GivenValue(target, p.Constant(0, _NOWHERE, target.type, value))


def _put(body: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *holders, name = path
    for each in holders:
        body = body.setdefault(each, {})
    if isinstance(value, dict):
        body.setdefault(name, value)
    else:
        body[name] = value


def as_sent(value: Value, kind: t.Type) -> object:
    """Return the value as a merchant sends it. Raises `ImpossibleError` if none can."""
    match kind:
        case t.Number(scale=int(scale)) if scale > 0:
            sent = float(Decimal(int(value)).scaleb(-scale))
            # The shortest digits that identify the double, as it is parsed.
            if Decimal(repr(sent)).scaleb(scale) != value:
                raise ImpossibleError("a number with more digits than JSON carries")
            return sent
        case t.Instant():
            return from_microseconds(int(value))
        case t.Ip():
            if is_private(int(value)):
                raise ImpossibleError("a private address")
            return show_network(int(value), IP_BITS)
        case _:
            return value


def _put_headers(
    headers: Mapping[tuple[str, str], SmtTerm],
    reader: WitnessReader,
    body: dict[str, Any],
    fields: dict[str, p.GivenValue],
) -> None:
    for (side, name), term in headers.items():
        if reader.holds(term.there):
            value = reader.of(term.value, term.type)
            _put(body, (side, "headers", name), value)
            target = p.HeaderFact(0, _NOWHERE, term.type, cast("Any", side), name)
            fields[f'{side}.headers["{name}"]'] = _given(target, value)


def _put_metadata(
    encoder: Encoder,
    reader: WitnessReader,
    body: dict[str, Any],
    fields: dict[str, p.GivenValue],
) -> None:
    source = encoder.source
    for key, kind in source.entries.items():
        index = reader.number(kind)
        if index == 0:
            continue
        entry: Any = []
        for (other, of), term in source.entry_values.items():
            if other == key and reader.holds(source.is_of_kind(kind, of)):
                value = reader.of(term.value, term.type)
                entry = as_sent(value, term.type)
                fields[f'metadata["{key}"]'] = _given_entry(key, term.type, value)
        if entry == [] and index in _ENTRIES:
            kind_of, carried = _ENTRIES[index]
            entry = as_sent(carried, kind_of)
            fields[f'metadata["{key}"]'] = _given_entry(key, kind_of, carried)
        _put(body, ("metadata", key), entry)


def _transactions(
    encoder: Encoder, reader: WitnessReader, moment: datetime
) -> list[dict[str, Any]]:
    """The attempts, made at `moment` where it doesn't matter when."""
    source = encoder.source
    count = 0 if source.count is None else reader.number(source.count)
    found: list[dict[str, Any]] = [msgspec.to_builtins(_ATTEMPT) for _ in range(count)]
    for (path, index), term in source.elements.items():
        if index >= count or not reader.holds(term.there):
            continue
        if isinstance(term.type, t.Record):
            continue
        _put(found[index], path, as_sent(reader.of(term.value, term.type), term.type))
    for each in found:
        each.setdefault("timestamp", moment)
        if each["status"] in ("succeeded", "declined"):
            each["connector"].setdefault("response_code", "0")
    return found


def _fill_required(body: dict[str, Any]) -> None:
    body.setdefault("id", "counterexample")
    for path, value in _REQUIRED.items():
        always = path[0] != "device" and path[:2] != ("method", "card")
        holder: Any = body
        for name in path[:-1]:
            holder = holder.setdefault(name, {}) if always else (holder or {}).get(name)
        if holder is not None:
            holder.setdefault(path[-1], value)
    if body["status"] in ("succeeded", "declined") and not body["transactions"]:
        body["transactions"] = [{**_ATTEMPT, "timestamp": body["timestamp"]}]


def _facts(body: dict[str, Any], clients: Mapping[str, dict[str, Any] | None]) -> Facts:
    try:
        payment = msgspec.convert(body, Payment)
    except msgspec.ValidationError as error:
        raise ImpossibleError(str(error)) from None
    sent = msgspec.json.encode({"payment": payment})
    if read_creation(sent, to_microseconds(payment.timestamp), _AT_ANY_TIME) != payment:
        raise ImpossibleError(
            "a payment that is refused, or of which the service removes something"
        )
    facts = derive(payment, to_microseconds(payment.timestamp), read_client)
    # A client is what the assignment says, regardless of the headers.
    return replace(
        facts,
        **{f"{side}_client": members and _client(members) for side, members in clients.items()},
    )


def _client(members: Mapping[str, Any]) -> Client:
    whole = {"kind": "unknown", "browser": None, "os": None, "consistent": True, **members}
    return msgspec.convert(whole, Client)


def _environment(
    encoder: Encoder, reader: WitnessReader
) -> tuple[dict[str, tuple[tuple[t.Type, Value], ...]], Environment]:
    entries: dict[str, list[tuple[t.Type, Value]]] = {}
    for name, value, found in encoder.lists:
        held = entries.setdefault(name, [])
        if reader.holds(found) and reader.holds(value.there):
            held.append((value.type, reader.of(value.value, value.type)))
    rows: dict[str, dict[Value, dict[str, Value | None]]] = {}
    for node, key, row in encoder.rows:
        table = rows.setdefault(node.table, {})
        if reader.holds(key.there):
            columns = table.setdefault(reader.of(key.value, key.type), {})
            columns[node.column] = reader.value(row)
    rates = {
        (currency, wanted): reader.number(rate)
        for wanted, (exists, rate) in encoder.rates.items()
        if reader.holds(exists)
        for currency in _currencies(encoder)
        if currency != wanted
    }
    environment = Environment(
        lists={
            name: EntrySet(frozenset(each for _, each in held)) for name, held in entries.items()
        },
        tables={name: Rows(held) for name, held in rows.items()},
        rates=rates,
    )
    return {name: tuple(dict.fromkeys(held)) for name, held in entries.items()}, environment


def _currencies(encoder: Encoder) -> tuple[str, ...]:
    kind = encoder.source.vocabulary.payment["currency"].type
    assert isinstance(kind, t.String)
    return kind.choices or ()
