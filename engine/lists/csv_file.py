"""Lists and tables as CSV: a header row, then a line an entry.

The columns are `value`, a table's own, `expires_at` and `note`, in any order; an empty cell is a
value left out. Both ways work line by line, in memory that does not grow with the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, TextIO

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.entries import column_texts, read_entry
from tollkeeper.engine.lists.imports import BadEntry, bad_entry
from tollkeeper.engine.lists.spec import Spec, TableSpec

MAX_LINE = 65_536

_OWN = ("value", "expires_at", "note")


def read_csv(stream: BinaryIO, spec: Spec, by: str | None = None) -> Iterator[ListEntry | BadEntry]:
    """The entries of a file in UTF-8, and what is wrong with every line that is none.

    If the header has errors, only these are reported. Lines count from 1.
    """
    reader = csv.reader(_lines(stream), strict=True)
    columns = tuple(spec.columns) if isinstance(spec, TableSpec) else ()
    header: list[str] | None = None
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            yield BadEntry(f"line {number}", f"this is not CSV: {error}")
            continue
        if not cells:
            continue
        if header is None:
            header = cells
            problem = _header_problem(header, columns)
            if problem is not None:
                yield BadEntry(f"line {number}", problem)
                return
        else:
            yield _read_line(spec, header, columns, cells, number, by)
    if header is None:
        yield BadEntry(
            "line 1", f"the file is empty, its first line names {_names(('value', *columns))}"
        )


def write_csv(stream: TextIO, spec: Spec, entries: Iterable[ListEntry]) -> int:
    """Writes what `read_csv` reads; the number of entries."""
    columns = tuple(spec.columns) if isinstance(spec, TableSpec) else ()
    writer = csv.writer(stream)
    writer.writerow(("value", *columns, "expires_at", "note"))
    count = 0
    for entry in entries:
        expires_at = "" if entry.expires_at is None else show_instant(entry.expires_at)
        cells = (text or "" for text in column_texts(entry))
        writer.writerow((entry.value, *cells, expires_at, entry.note or ""))
        count += 1
    return count


def _header_problem(header: list[str], columns: tuple[str, ...]) -> str | None:
    known = (*_OWN, *columns)
    unknown = [name for name in header if name not in known]
    if unknown:
        return f"there is no column {_names(unknown[:10])}; the columns are {_names(known)}"
    missing = [name for name in ("value", *columns) if name not in header]
    if missing:
        return f"the column {_names(missing)} is missing"
    if len(set(header)) < len(header):
        return "a column is named twice"
    return None


def _read_line(
    spec: Spec,
    header: list[str],
    columns: tuple[str, ...],
    cells: list[str],
    number: int,
    by: str | None,
) -> ListEntry | BadEntry:
    if len(cells) != len(header):
        return BadEntry(
            f"line {number}", f"the line has {len(cells)} cells, the header {len(header)}"
        )
    row = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
    given: dict[str, object] = {name: row[name] for name in _OWN if name in row}
    if columns:
        given["columns"] = {name: row[name] for name in columns if name in row}
    read = read_entry(spec, given, "", by)
    if isinstance(read, ListEntry):
        return read
    return bad_entry(f"line {number}", read)


def _lines(stream: BinaryIO) -> Iterator[str]:
    # A byte that is no UTF-8 becomes a surrogate, and so an error of its own line.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from iter(lambda: text.readline(MAX_LINE), "")
    finally:
        # Without this it would close the stream, which belongs to the caller.
        text.detach()


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
