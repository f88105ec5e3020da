"""Labels and the beginning of a period, as their author writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tollkeeper.api.terminal.inputs import InputError, read_labels, read_since
from tollkeeper.engine.instants import to_microseconds

NOW = to_microseconds(datetime(2026, 3, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", "id,label,by\np-1,fraud,ana\np-2,genuine,ana\np-3,,ana\n"),
        ("l.jsonl", '{"id": "p-1", "label": "fraud"}\n\n{"id": "p-2", "label": "genuine"}\n'),
    ],
)
def test_labels_are_read_by_payment(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read_labels(tmp_path / name) == {"p-1": "fraud", "p-2": "genuine"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.csv", "payment,label\np-1,fraud\n", "the columns `id` and `label`"),
        ("l.jsonl", '{"id": "p-1", "label": 1}\n{"id": 1}\n', "l.jsonl:2:"),
        ("l.jsonl", "\udcff", "l.jsonl:1: not UTF-8"),
        ("l.csv", "id,label\np-1,fraud\np-\udce9,fraud\n", "l.csv:3: not UTF-8"),
        ("absent.csv/l.csv", "", "can't be read"),
    ],
)
def test_labels_that_cannot_be_read_are_told(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    if content:
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as raised:
        read_labels(tmp_path / name)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30d", datetime(2026, 3, 1, tzinfo=UTC)),
        ("12h", datetime(2026, 3, 30, 12, tzinfo=UTC)),
        ("2026-03-05", datetime(2026, 3, 5, tzinfo=UTC)),
        ("2026-03-05T10:00:00-03:00", datetime(2026, 3, 5, 13, tzinfo=UTC)),
    ],
)
def test_a_period_begins_some_time_ago_or_at_a_moment(text: str, moment: datetime) -> None:
    assert read_since(text, NOW) == to_microseconds(moment)


@pytest.mark.parametrize("text", ["", "30", "d", "yesterday", "9" * 9 + "d", "2026-13-01"])
def test_another_beginning_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="neither a time ago"):
        read_since(text, NOW)
