"""Streams of what happened are read line by line, and what can't be read is named with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tollkeeper.engine.offline.testing.streams import StreamError, created_of, read_stream

PAYMENT = {
    "payment": {
        "id": "p-1",
        "type": "purchase",
        "currency": "EUR",
        "method": {"type": "card"},
        "merchant": {"id": "m-1"},
    }
}
HOLDS = 'a line holds a "payment", an "update", an "event", a "label" of a payment, or a "list"'


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    path.write_text(json.dumps(PAYMENT), encoding="utf-8-sig")
    assert len(read_stream(path)) == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", f"expected `object`, got `array`: {HOLDS}"),
        ('{"pament": {}}', f"object contains unknown field `pament`: {HOLDS}"),
        ("{}", HOLDS),
        ('{"payment": 1}', "`payment`: `payment` must be an object"),
        ('{"payment": {"timestamp": 5}}', "`payment.timestamp`: `timestamp` must be a string"),
        ('{"event": {}}', "object missing required field `type` - at `$.event`"),
        (json.dumps(PAYMENT | {"decision": {"score": 40}}), "<= 1.0 - at `$.decision.score`"),
        (json.dumps(PAYMENT | {"decision": {"score": 1e308}}), "<= 1.0 - at `$.decision.score`"),
        ('{"payment":', "this is no JSON: input data was truncated"),
    ],
)
def test_what_a_line_lacks_is_said_with_its_place(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "day.jsonl"
    path.write_text(f"{json.dumps(PAYMENT)}\n{line}\n")
    with pytest.raises(StreamError) as refused:
        read_stream(path)
    assert str(refused.value).startswith(f"{path}:2: ")
    assert said in str(refused.value)


def test_a_payment_without_its_envelope_is_told_so() -> None:
    with pytest.raises(StreamError, match=r'unknown field `id`: {"payment": {…}} is needed'):
        created_of(json.dumps(PAYMENT["payment"]).encode(), 0)
