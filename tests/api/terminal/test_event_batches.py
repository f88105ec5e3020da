"""Events of a file, as a service takes them."""

from __future__ import annotations

from tollkeeper.api.terminal.event_batches import batches


def test_a_line_of_a_history_holds_its_event() -> None:
    lines = [b'{"type": "login"}\n', b'{"event": {"type": "login"}, "at": "2026-01-01"}\n', b"\n"]
    (batch,) = batches([*lines, b"[1]", b"nothing"])
    assert batch == [
        (1, b'{"type": "login"}'),
        (2, b'{"type": "login"}'),
        (4, b"[1]"),
        (5, b'"not JSON"'),
    ]
