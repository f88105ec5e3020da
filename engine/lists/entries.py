"""Entries as people send and see them, and as the journal keeps them.

The journal keeps a value as canonical text, and a table's columns as a JSON array of such texts in
the order of the table's columns, null where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.intake.field_rules import printable_name
from tollkeeper.engine.intake.redaction import mask_card_numbers
from tollkeeper.engine.intake.violations import Violation, unknown_member
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.indexes import network_key
from tollkeeper.engine.lists.spec import ListSpec, Spec, TableSpec, lookup_of
from tollkeeper.engine.lists.values import (
    MAX_VALUE_TEXT,
    is_text,
    read_instant,
    read_network,
    read_number,
    read_string,
    read_value,
    show_network,
    show_value,
)
from tollkeeper.grammar.program import Value

_MEMBERS = frozenset({"value", "columns", "expires_at", "note", "by"})

_encode_columns = msgspec.json.Encoder().encode
_decode_columns = msgspec.json.Decoder(list[str | None]).decode


def read_entry(
    spec: Spec, sent: object, path: str, by: str | None = None
) -> ListEntry | list[Violation]:
    """An entry from `{"value", "columns"?, "expires_at"?, "note"?}`, or all that is wrong with it.

    `path` is its place in the request. A column that is left out or null is missing in the row. A
    member `by`, which shown entries have, is ignored. Card numbers in the note are masked.
    """
    if not isinstance(sent, Mapping):
        return [Violation(path, "invalid_type", "an entry is an object")]
    violations = [
        unknown_member(f"{path}.{printable_name(name)}") for name in sent if name not in _MEMBERS
    ]
    value, columns, expires_at, note = "", None, None, sent.get("note")
    if sent.get("value") is None:
        violations.append(Violation(f"{path}.value", "missing", "an entry needs a value"))
    else:
        try:
            value = canonical_value(spec, sent["value"])
        except ValueError as error:
            violations.append(Violation(f"{path}.value", "invalid_value", str(error)))
    if isinstance(spec, TableSpec):
        columns = _read_columns(spec, sent.get("columns"), f"{path}.columns", violations)
    elif sent.get("columns") is not None:
        message = "only a table's entry has columns"
        violations.append(Violation(f"{path}.columns", "invalid_value", message))
    if sent.get("expires_at") is not None:
        try:
            expires_at = read_instant(sent["expires_at"])
        except ValueError as error:
            violations.append(Violation(f"{path}.expires_at", "invalid_format", str(error)))
    if note is not None and not (isinstance(note, str) and is_text(note)):
        violations.append(Violation(f"{path}.note", "invalid_type", "a note is text in UTF-8"))
        note = None
    elif note is not None and len(note) > MAX_VALUE_TEXT:
        message = f"a note has at most {MAX_VALUE_TEXT} characters"
        violations.append(Violation(f"{path}.note", "too_long", message))
    return violations or ListEntry(
        value, columns, expires_at, mask_card_numbers(note) if note else None, by
    )


def show_entry(spec: Spec, entry: ListEntry) -> dict[str, Any]:
    """The entry in the form that `read_entry` takes, all values as text; what is not set is left
    out."""
    shown: dict[str, Any] = {"value": entry.value}
    if isinstance(spec, TableSpec):
        shown["columns"] = dict(zip(spec.columns, column_texts(entry), strict=True))
    if entry.expires_at is not None:
        shown["expires_at"] = show_instant(entry.expires_at)
    if entry.note is not None:
        shown["note"] = entry.note
    if entry.by is not None:
        shown["by"] = entry.by
    return shown


def canonical_value(spec: Spec, sent: object) -> str:
    """The text under which a value is kept. Raises `ValueError` with words for the author."""
    if lookup_of(spec) == "network":
        return show_network(*read_network(sent))
    if spec == ListSpec("number"):
        return show_value("number", read_number(sent))
    return read_string(sent)


def index_key(spec: Spec, value: str) -> Value:
    """What the entry is found by in memory, from its canonical text."""
    if lookup_of(spec) == "network":
        return network_key(*read_network(value))
    if spec == ListSpec("number"):
        return read_number(value)
    return value


def column_texts(entry: ListEntry) -> list[str | None]:
    """The columns' canonical texts, in the table's order."""
    return [] if entry.columns is None else _decode_columns(entry.columns)


def column_values(spec: Spec, entry: ListEntry) -> tuple[Value | None, ...]:
    """The columns as `grammar/types.py` carries them, none for a list."""
    if isinstance(spec, ListSpec):
        return ()
    return tuple(
        None if text is None else read_value(type_, text)
        for type_, text in zip(spec.columns.values(), column_texts(entry), strict=True)
    )


def _read_columns(spec: TableSpec, sent: object, path: str, violations: list[Violation]) -> str:
    if sent is None:
        sent = {}
    if not isinstance(sent, Mapping):
        violations.append(Violation(path, "invalid_type", "the columns are an object"))
        return ""
    violations.extend(
        Violation(f"{path}.{name}", "invalid_value", f"the table has no column `{name}`")
        for name in sent
        if name not in spec.columns
    )
    texts: list[str | None] = []
    for name, type_ in spec.columns.items():
        if sent.get(name) is None:
            texts.append(None)
            continue
        try:
            texts.append(show_value(type_, read_value(type_, sent[name])))
        except ValueError as error:
            violations.append(Violation(f"{path}.{name}", "invalid_value", str(error)))
    return _encode_columns(texts).decode()
