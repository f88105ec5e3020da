"""Import and export a list's entries as a file; an import replaces all entries, or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO

from tollkeeper.engine.instants import now
from tollkeeper.engine.journal import list_contents, staging
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.journal.lock import mark_import
from tollkeeper.engine.journal.source import (
    JournalSource,
    connect_to_stage,
    discard_abandoned,
    folder_of,
)
from tollkeeper.engine.lists.csv_file import read_csv, write_csv
from tollkeeper.engine.lists.imports import BadEntry, ImportResult, import_entries
from tollkeeper.engine.lists.maxmind_file import read_maxmind
from tollkeeper.engine.lists.spec import Spec, TableSpec
from tollkeeper.engine.progress import Progress, unwatched
from tollkeeper.engine.publish.change_lists import ReplaceEntries
from tollkeeper.engine.publish.queue import perform_in
from tollkeeper.engine.publish.verbs import Effect
from tollkeeper.engine.read_folder import Picture, read_folder
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.errors import Invalid, Refused
from tollkeeper.engine.registry.lists import find_list


@dataclass(frozen=True, slots=True)
class Target:
    """The list or table to fill: its account's number, its name and its spec."""

    account: int
    name: str
    spec: Spec


def find_target(source: JournalSource, account: str, name: str) -> Target:
    """Raises `NotFound`, `JournalError`."""

    async def find(picture: Picture) -> Target:
        found = find_account(picture.state, account)
        return Target(found.number, name, find_list(found, name).spec)

    return read_folder(source, find)


def import_file(
    source: JournalSource,
    account: str,
    name: str,
    file: Path,
    columns: Mapping[str, str],
    author: str,
    progress: Progress,
) -> ImportResult | Effect:
    """Replace a list's content by that of a CSV file, or of a MaxMind DB when `columns` are given.

    `columns` gives the path in a record to each column's value. The file is written to a staging
    table in short transactions, so that a running service can write in between, and then swapped in
    by the process that holds the journal. If the file has errors, they are in the `ImportResult`,
    and nothing has changed. Raises `Refused`, `BadDatabase`, `JournalError`.
    """
    target = find_target(source, account, name)
    with closing(connect_to_stage(source)) as connection:
        discard_abandoned(connection, source)
        with mark_import(folder_of(source)):
            content = list_contents.stage_content(connection, target.account, name, now())
            entries = _entries(target, file, columns, author, progress)
            is_whole = False
            try:
                imported = import_entries(entries, partial(_stage, connection, content))
                is_whole = not imported.bad
            finally:
                if not is_whole:
                    staging.discard(connection, content)
            if imported.bad:
                return imported
            try:
                swap = ReplaceEntries(account, name, content)
                return perform_in(source, swap, author, unwatched)
            except Refused:
                staging.discard(connection, content)
                raise


def _stage(connection: SqlConnection, content: int, batch: Sequence[ListEntry]) -> None:
    for _ in list_contents.fill_content(connection, content, batch):
        pass


def export_file(
    source: JournalSource, account: str, name: str, stream: TextIO, progress: Callable[[int], None]
) -> int:
    """Write a list's entries as CSV that `import_file` reads; how many. `progress` counts them."""

    async def export(picture: Picture) -> int:
        found = find_account(picture.state, account)
        spec = find_list(found, name).spec
        batches = picture.journal.list_entries(found.number, name)
        return write_csv(stream, spec, _count(batches, progress))

    return read_folder(source, export)


def _entries(
    target: Target, file: Path, columns: Mapping[str, str], author: str, progress: Progress
) -> Iterator[ListEntry | BadEntry]:
    if not columns:
        with file.open("rb") as stream:
            yield from _describe(read_csv(stream, target.spec, author), stream, progress)
        return
    if not isinstance(target.spec, TableSpec) or target.spec.by != "network":
        message = (
            f"only a table by network is filled from a MaxMind DB, and `{target.name}` is none"
        )
        raise Invalid.at("list", "invalid_value", message)
    unknown = [name for name in columns if name not in target.spec.columns]
    if unknown:
        message = f"the table `{target.name}` has no column `{unknown[0]}`"
        raise Invalid.at("column", "invalid_value", message)
    yield from read_maxmind(file, target.spec, columns, author)


def _describe(
    found: Iterator[ListEntry | BadEntry], stream: BinaryIO, progress: Progress
) -> Iterator[ListEntry | BadEntry]:
    # Of a pipe, nobody knows how much is left.
    size = os.fstat(stream.fileno()).st_size if stream.seekable() else 0
    for number, entry in enumerate(found):
        if size and number % 1000 == 0:
            progress(min(1.0, stream.tell() / size))
        yield entry


def _count(
    batches: Iterator[list[ListEntry]], progress: Callable[[int], None]
) -> Iterator[ListEntry]:
    count = 0
    for batch in batches:
        yield from batch
        count += len(batch)
        progress(count)
