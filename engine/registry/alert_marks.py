"""The state of an alert: open until somebody acknowledges or closes it."""

from __future__ import annotations

from tollkeeper.engine.registry.changes import AlertMarked, AlertState
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.registry.state import Account, AlertMark
from tollkeeper.engine.registry.versions import MAX_REASON

OPEN = AlertMark("open", None, None, "")


def mark_alert(
    account: Account, sequence: int, number: int, state: AlertState, note: str
) -> AlertMarked | None:
    """Set the state of the alert at this place of the journal; None when that changes nothing.

    Raises `Invalid` for a note that is not one line of text.
    """
    if len(note) > MAX_REASON or not note.isprintable():
        message = f"a note has at most {MAX_REASON} characters, none of them a control"
        raise Invalid.at("alert.note", "invalid_format", message)
    known = mark_of(account, sequence, number)
    if (known.state, known.note) == (state, note):
        return None
    return AlertMarked(sequence, number, state, note)


def mark_of(account: Account, sequence: int, number: int) -> AlertMark:
    return account.alert_marks.get((sequence, number), OPEN)
