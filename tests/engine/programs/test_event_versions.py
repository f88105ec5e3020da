"""Which changes of a contract are compatible (issue: planned versions of event types)."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.event_contract import Contract, read_data, recall_data
from tollkeeper.engine.programs.event_versions import breaks
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import EventType

FIELDS = 'field user: string required\n  field kind: "a" | "b"\n  field size: number'


def contract(fields: str = FIELDS) -> Contract:
    program = read_file(f"event e\n  {fields}\n".encode(), KnownNames()).program
    assert isinstance(program, EventType)
    return Contract.of(program)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("field size: number", "field size: number\n  field more: ip"),
        ('"a" | "b"', '"b" | "a" | "c"'),
        ('"a" | "b"', "string"),
        ("string required", "string"),
    ],
)
def test_what_takes_every_old_event_and_loses_nothing_is_compatible(old, new):
    assert breaks(contract(), contract(FIELDS.replace(old, new))) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("field size: number", "", "`size` is removed"),
        ("size: number", "size: string", "`size` has another type"),
        ("size: number", "size: number required", "`size` is newly required"),
        ("size: number", "size: number\n  field x: ip required", "`x` is newly required"),
        ('"a" | "b"', '"a"', "`kind` has no choice `b` more"),
        ("user: string", 'user: "u"', "`user` is now a choice"),
    ],
)
def test_what_an_old_sender_or_reader_would_miss_is_breaking(old, new, message):
    found = breaks(contract(), contract(FIELDS.replace(old, new)))
    assert [each.message for each in found] == [message]


def test_numbers_are_rounded_to_six_places_and_missing_beyond_the_bound():
    reading = read_data(contract(), {"user": "u", "size": 0.12345678}, "event.data")
    assert reading.values["size"] == 123457
    reading = read_data(contract(), {"user": "u", "size": 1e13}, "event.data")
    assert reading.violations == []
    assert "size" not in reading.values


def test_what_is_kept_reads_as_it_did_when_it_came():
    sent = {"user": "u", "kind": "b", "size": 1.5, "unknown": [1]}
    reading = read_data(contract(), sent, "event.data")
    assert reading.kept == {"user": "u", "kind": "b", "size": 1.5}
    recalled = recall_data(contract(), reading.kept, "e-1", 7)
    assert recalled == {**reading.values, "id": "e-1", "timestamp": 7}
