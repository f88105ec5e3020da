"""Whatever is sent, reading an event gives an event or violations with places in the body."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.events.submission import Event, place_in_batch, read_event, split
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.programs.load import load_account
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.changes import AccountCreated, Activated, RecordedChange
from tollkeeper.engine.registry.state import Configuration, fold_change, fold_changes
from tollkeeper.engine.registry.versions import encode_file, store_version
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.tests.examples import examples

NOW = 1_789_000_000_000_000
TYPE = """
event sign_in
  field user_id: string required
  field result: "success" | "failure"
  field ip: ip
  field risk: number
  field at: instant
  field known: boolean
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = ("user_id", "result", "ip", "risk", "at", "known")
USUAL = st.sampled_from(
    [
        "u-1",
        "failure",
        "203.0.113.7",
        "2026-09-09T12:00:00Z",
        "0001-01-01T00:00:00+23:59",
        1e300,
        2**70,
    ]
)
DATA = st.dictionaries(st.sampled_from(NAMES), JSON | USUAL)
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["sign_in", "payment", ""]) | JSON, "data": DATA | JSON},
    optional={"id": JSON, "timestamp": JSON | USUAL},
)


@pytest.fixture(scope="module")
def active():
    program = read_file(TYPE.encode(), KnownNames()).program
    assert program is not None
    made = RecordedChange(1, NOW, 1, "test", AccountCreated("shop"))
    state = fold_change(Configuration(), made)
    stored = store_version(state.accounts[1], encode_file(program), TYPE, {})
    changes = [stored, Activated("event", "sign_in", 1)]
    state = fold_changes(
        state,
        [
            RecordedChange(place, NOW, 1, "test", change)
            for place, change in enumerate(changes, start=2)
        ],
    )
    return load_account(state.accounts[1], {})


@settings(max_examples=examples(300))
@given(sent=EVENTS | JSON)
def test_reading_an_event_never_fails(active, sent):
    found = read_event(json.dumps({"event": sent}).encode(), NOW, active)
    if isinstance(found, Event):
        assert found.data["user_id"] == sent["data"]["user_id"]
        assert found.data["timestamp"] == found.timestamp
    else:
        assert found
        assert all(each.field.split(".")[0] in ("event", "body") for each in found)


def test_a_time_that_no_calendar_can_show_is_refused(active):
    data = {"user_id": "u-1", "at": "9999-12-31T23:59:59-03:00"}
    body = json.dumps({"event": {"type": "sign_in", "data": data}}).encode()
    (found,) = read_event(body, NOW, active)
    assert (found.field, found.type) == ("event.data.at", "invalid_format")
    assert "years 1 to 9999" in found.message


@given(st.binary(max_size=60) | st.text().map(str.encode))
def test_bytes_that_are_no_event_are_refused(active, body):
    assert all(isinstance(each, Violation) for each in read_event(body, NOW, active))
    # Texts are drawn from the code's own too: `{"events":null}` is a batch, and none to take.
    assert isinstance(split(body) or None, Violation | None)


@given(st.lists(JSON, max_size=4))
def test_each_event_of_a_batch_is_read_as_if_it_were_alone(sent):
    body = (
        json.dumps({"events": sent}, allow_nan=False, default=str).encode() if _plain(sent) else b""
    )
    if body:
        assert [json.loads(each) for each in split(body) or []] == [
            {"event": each} for each in sent
        ]


def _plain(value: object) -> bool:
    text = json.dumps(value)
    return "NaN" not in text and "Infinity" not in text and "\\ud" not in text


def test_a_place_in_a_batch_starts_at_its_event():
    found = [Violation("event.data.ip", "missing", ""), Violation("body", "malformed_json", "")]
    assert [each.field for each in place_in_batch(3, found)] == ["events[3].data.ip", "events[3]"]
