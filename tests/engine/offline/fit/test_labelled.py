"""Labelled histories: what is read, and what is said of a line that can't be."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.testing.streams import StreamError

PAYMENT = {
    "id": "p-1",
    "type": "purchase",
    "currency": "BRL",
    "amount": 10,
    "timestamp": "2025-06-02T10:00:00Z",
    "method": {"type": "pix"},
    "merchant": {"id": "m-1"},
}
UPDATE = {
    "id": "p-1",
    "status": "declined",
    "transactions": [
        {
            "status": "declined",
            "timestamp": "2025-06-02T10:00:01Z",
            "connector": {"id": "c-1", "response_code": "51"},
        }
    ],
}


def line(**parts):
    return json.dumps(parts).encode()


def read(*lines):
    return list(read_labelled(lines))


def test_a_payment_arrives_at_its_timestamp_and_an_update_when_it_says():
    payment, update = read(
        line(payment=PAYMENT, label=1), line(update=UPDATE, at="2025-06-02T10:00:03Z")
    )
    assert payment.label == 1
    assert payment.item.arrived == to_microseconds(payment.item.payment.timestamp)
    assert update.item.arrived - payment.item.arrived == 3_000_000


def test_a_payment_without_a_label_is_history_alone():
    assert read(line(payment=PAYMENT))[0].label is None


def test_empty_lines_are_skipped_and_counted():
    assert read(b"\n", line(payment=PAYMENT), b"  \n")[0].item.line == 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"{"], "line 1: input data was truncated"),
        ([b"[]"], "line 1: expected `object`, got `array`"),
        ([b"{}"], 'line 1: a line holds a "payment", with a "label" or without, or an "update"'),
        (
            [line(payment=PAYMENT, update=UPDATE)],
            'line 1: a line holds a "payment", with a "label" or without, or an "update"',
        ),
        (
            [line(update=UPDATE, label=1)],
            'line 1: a line holds a "payment", with a "label" or without, or an "update"',
        ),
        ([line(payment=PAYMENT, label=2)], "line 1: invalid enum value 2 - at `$.label`"),
        (
            [line(payment=PAYMENT | {"amount": -1}, label=0)],
            "line 1: `payment.amount`: `amount` must be between 0 and 1000000000000",
        ),
        (
            [line(payment={**PAYMENT, "timestamp": None})],
            "line 1: expected `datetime`, got `null` - at `$.timestamp`",
        ),
        (
            [
                line(payment=PAYMENT),
                line(payment=PAYMENT | {"id": "p-2", "timestamp": "2025-06-02T09:00:00Z"}),
            ],
            "line 2: this arrives before the line above it",
        ),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(lines, message):
    with pytest.raises(StreamError) as raised:
        read(*lines)
    assert str(raised.value) == message


@given(st.binary() | st.text().map(str.encode) | st.builds(line, payment=st.text(), at=st.text()))
def test_whatever_a_line_holds_it_is_read_or_refused(text):
    with suppress(StreamError):
        read(text)
