"""A past list, looked up a few entries at a time, answers as all its entries in memory would."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal import list_contents, schema
from tollkeeper.engine.journal.entries import (
    Addition,
    Entry,
    Kind,
    ListChange,
    ListEntry,
    Removal,
    Replacement,
)
from tollkeeper.engine.journal.sqlite import SqliteJournal, open_journal
from tollkeeper.engine.lists.contents import Contents, build_contents
from tollkeeper.engine.lists.entries import canonical_value
from tollkeeper.engine.lists.past import PastContents, look_up
from tollkeeper.engine.lists.spec import ListSpec, Spec, TableSpec
from tollkeeper.engine.lists.values import read_network

LIST = "watched"
TEXTS = ("4", "41", "411", "4111", "4112", "41a", "ß", "ßß", "a\0b", "x" * 256)
NUMBERS = ("0", "-7", "12.5", "12.50", "0.000001", "1e12", "-0.0")
NETWORKS = (
    "::/0", "::/3", "::/80", "::fffe:0:0/95", "0.0.0.0/0", "10.0.0.0/8", "10.7.7.0/24", "10.7.7.7",
    "2001:db8::/32", "2001:db8::/33", "2001:db8::77", "2001:db8::76/127", "::1",
)  # fmt: skip
# With what is asked for beside the entries' own values.
SPECS: tuple[tuple[Spec, tuple[str, ...], tuple[Any, ...]], ...] = (
    (ListSpec("string"), TEXTS, (*TEXTS, "", "x" * 257, "nobody")),
    (ListSpec("number"), NUMBERS, (0, -7_000_000, 12_500_000, 1, 10**18, 10**30, 12_500_001)),
    (ListSpec("ip"), NETWORKS, tuple(read_network(text)[0] for text in NETWORKS)),
    (TableSpec("value", {"n": "number"}), TEXTS, (*TEXTS, "", "nobody")),
    (TableSpec("prefix", {"n": "number"}), TEXTS, (*(t + "9" for t in TEXTS), *TEXTS, "", "9")),
    (
        TableSpec("network", {"n": "number"}),
        NETWORKS,
        tuple(
            read_network(text)[0]
            for text in (*NETWORKS, "10.7.7.8", "10.7.8.8", "11.0.0.0", "2001:db8::76", "3::")
        ),
    ),
)
MOMENTS = (0, 9, 10, 11, 1_000)

some_entries = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from((None, 10, 11))), min_size=1, max_size=5
)
steps = st.lists(
    st.tuples(st.sampled_from(("put", "put", "remove", "import", "stage")), some_entries),
    max_size=7,
)


@pytest.mark.parametrize(("spec", "values", "asked"), SPECS)
@settings(max_examples=12, deadline=None)
@given(happened=steps)
def test_a_past_list_answers_at_every_place_as_all_its_entries_would(
    spec: Spec,
    values: tuple[str, ...],
    asked: tuple[Any, ...],
    happened: list[tuple[str, list[tuple[int, int | None]]]],
) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(compared(Path(folder), spec, values, asked, happened))


async def compared(
    folder: Path, spec: Spec, values: tuple[str, ...], asked: tuple[Any, ...], happened: Any
) -> None:
    async with open_journal(folder, "test") as journal:
        for number, (what, given_) in enumerate(happened):
            entries = tuple(made(spec, values, number, given_))
            await apply(journal, folder, what, entries)
        with closing(schema.connect_for_reading(folder)) as connection:
            for sequence in range(journal.last_sequence() + 2):
                held = build_contents(spec, list_contents.entries_at(connection, 1, LIST, sequence))
                found = look_up(spec, partial(journal.list_entries_at, 1, LIST, sequence))
                for key in asked:
                    for at in MOMENTS:
                        assert answer(spec, found, key, at) == answer(spec, held, key, at), (
                            sequence,
                            key,
                            at,
                        )


def made(spec: Spec, values: tuple[str, ...], step: int, given_: Any) -> Iterator[ListEntry]:
    """Each value once, as a request's entries are, each with a row of its own."""
    chosen = {canonical_value(spec, values[index % len(values)]): end for index, end in given_}
    for number, (value, end) in enumerate(chosen.items()):
        columns = None if isinstance(spec, ListSpec) else f'["{step * 100 + number}"]'
        yield ListEntry(value, columns, end)


async def apply(
    journal: SqliteJournal, folder: Path, what: str, entries: tuple[ListEntry, ...]
) -> None:
    change: ListChange
    match what:
        case "put":
            change = Addition(LIST, entries)
        case "remove":
            change = Removal(LIST, tuple(entry.value for entry in entries))
        case _:
            with closing(schema.connect(folder)) as connection:
                content = list_contents.stage_content(connection, 1, LIST, now=1)
                list(list_contents.fill_content(connection, content, entries))
            if what == "stage":
                return
            change = Replacement(LIST, content)
    sequence = journal.last_sequence() + 1
    entry = Entry(sequence, 1, Kind.CHANGE, "1", sequence, sequence, b"{}")
    await journal.append(entry, contents=(change,))


def answer(spec: Spec, held: Contents | PastContents, key: Any, at: int) -> object:
    return held.contains(key, at) if isinstance(spec, ListSpec) else held.find(key, at)


@pytest.mark.parametrize(
    ("spec", "key", "most"),
    [
        (ListSpec("string"), "ana", 1),
        (ListSpec("number"), 12_500_000, 1),
        (ListSpec("ip"), read_network("10.7.7.7")[0], 129),
        (TableSpec("prefix", {"n": "number"}), "4" * 1_000, 256),
    ],
)
def test_a_key_is_looked_up_once_and_asks_for_no_more_values_than_can_hold_it(
    spec: Spec, key: Any, most: int
) -> None:
    asked = []

    def find(values: Any) -> list[ListEntry]:
        asked.append(values)
        return []

    looked_up = look_up(spec, find)
    assert {bool(answer(spec, looked_up, key, at)) for at in MOMENTS} == {False}
    assert [len(set(values)) for values in asked] == [most]
