from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.csv_file import read_csv, write_csv
from tollkeeper.engine.lists.entries import read_entry
from tollkeeper.engine.lists.imports import BadEntry
from tollkeeper.engine.lists.spec import ListSpec, TableSpec

STRINGS = ListSpec("string")
BINS = TableSpec("prefix", {"country": "string", "funding": ("credit", "debit"), "risk": "number"})


def read(content: str | bytes, spec=STRINGS) -> list[ListEntry | BadEntry]:
    data = content.encode() if isinstance(content, str) else content
    return list(read_csv(io.BytesIO(data), spec, by="toll lists import"))


def test_columns_may_stand_in_any_order_and_cells_may_be_empty():
    found = read("funding,value,note,country,risk\ndebit,4111,,BR,\n,42,checked,,0.50\n", BINS)
    assert found == [
        ListEntry("4111", '["BR","debit",null]', None, None, "toll lists import"),
        ListEntry("42", '[null,null,"0.5"]', None, "checked", "toll lists import"),
    ]


def test_quotes_commas_byte_order_mark_and_windows_lines_are_read():
    found = read('\ufeffvalue,note\r\n"a,b","say ""hi"""\r\n\r\n"two\nlines",\r\n')
    assert [(entry.value, entry.note) for entry in found] == [
        ("a,b", 'say "hi"'),
        ("two\nlines", None),
    ]


def test_every_bad_line_is_named_with_its_number(snapshot):
    content = (
        b"value,country,funding,risk,expires_at\n"
        b"4111,BR,credit,1,2030-01-01T00:00:00Z\n"
        b",BR,credit,1,\n"
        b"42,BR,cash,high,tomorrow\n"
        b"43,BR\n"
        b"\n"
        b"44,\xff\xfe,debit,1,\n"
        b"45,BR,debit,1,\n"
        b'46,"BR"x,debit,1,\n'
        b"47,BR,debit,1,,\n"
        b'48,"never closed,debit,1,\n'
    )
    found = read(content, BINS)
    assert sum(isinstance(entry, ListEntry) for entry in found) == 2
    bad = [f"{entry.place}: {entry.message}" for entry in found if isinstance(entry, BadEntry)]
    assert "\n".join(bad) == snapshot


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty, its first line names `value`"),
        ("\n\n", "the file is empty, its first line names `value`"),
        ("ana\nbob\n", "there is no column `ana`; the columns are `value`, `expires_at`, `note`"),
        ("note\nfirst\n", "the column `value` is missing"),
        ("value,value\na,b\n", "a column is named twice"),
    ],
)
def test_a_header_with_errors_is_all_that_is_said(content, message):
    assert [entry.message for entry in read(content)] == [message]


def test_a_line_without_end_is_read_in_bounded_pieces():
    found = read(b"value\n" + b"x" * 1_000_000)
    assert all(isinstance(entry, BadEntry) for entry in found)
    assert len(found) < 100


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_entries_or_bad_lines(content):
    assert all(isinstance(entry, ListEntry | BadEntry) for entry in read(b"value,note\n" + content))


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_rows = st.fixed_dictionaries(
    {"value": _text},
    optional={
        "columns": st.fixed_dictionaries(
            {},
            optional={
                "country": _text,
                "funding": st.sampled_from(["credit", "debit"]),
                "risk": st.decimals(-1000, 1000, places=3),
            },
        ),
        "note": _text,
        "expires_at": st.just("2030-01-01T00:00:00Z"),
    },
)


@settings(deadline=None)
@given(st.lists(_rows, max_size=5))
def test_what_is_exported_always_imports_as_it_was(rows):
    entries = [read_entry(BINS, row, "entries") for row in rows]
    stream = io.StringIO(newline="")
    assert write_csv(stream, BINS, entries) == len(entries)
    assert list(read_csv(io.BytesIO(stream.getvalue().encode()), BINS)) == entries
