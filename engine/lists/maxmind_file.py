"""A MaxMind DB file as the rows of a table by network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import maxminddb

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.entries import read_entry
from tollkeeper.engine.lists.imports import BadEntry, bad_entry
from tollkeeper.engine.lists.spec import TableSpec


class BadDatabase(Exception):  # noqa: N818 - the file's fault, said to its owner
    """The file is no MaxMind DB, or a broken one."""


def read_maxmind(
    path: str | os.PathLike[str],
    spec: TableSpec,
    paths: Mapping[str, str],
    by: str | None = None,
) -> Iterator[ListEntry | BadEntry]:
    """A row for every network that has a value in one of the columns.

    `paths` says where in a record a column's value is: `country.iso_code`, or
    `subdivisions.0.iso_code` for the first of several. A column without a path, or a record
    without the value, is missing. Raises `BadDatabase`, and `OSError` for a file out of reach.
    """
    parts = {column: path_.split(".") for column, path_ in paths.items()}
    for network, record in _records(path):
        columns = {column: _value_at(record, steps) for column, steps in parts.items()}
        if all(value is None for value in columns.values()):
            continue
        read = read_entry(spec, {"value": network, "columns": columns}, "", by)
        yield read if isinstance(read, ListEntry) else bad_entry(f"network {network}", read)


def _records(path: str | os.PathLike[str]) -> Iterator[tuple[str, object]]:
    # The reader in C is faster, but a damaged file can end the process.
    try:
        with maxminddb.open_database(path, maxminddb.MODE_MMAP) as database:
            for network, record in database:
                yield str(network), record
    except OSError:
        raise
    except Exception as error:
        # A damaged file brings about errors of many types in the reader.
        raise BadDatabase(f"this is not a whole MaxMind DB file: {error}") from error


def _value_at(record: object, steps: list[str]) -> object:
    for step in steps:
        if isinstance(record, Mapping):
            record = record.get(step)
        elif isinstance(record, list) and step.isdecimal() and int(step) < len(record):
            record = record[int(step)]
        else:
            return None
    return record
