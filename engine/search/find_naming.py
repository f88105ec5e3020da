"""Find the journal entries that may name a person, as far as the index has come. The caller reads
the rest from the journal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.search.blocks import block_of, descending, unpack
from tollkeeper.engine.search.index_file import is_current, is_of, read_index_place
from tollkeeper.engine.search.reading import AccountIndex, open_index
from tollkeeper.engine.search.terms import NO_VALUE, Facet, Term, text_term


class NamingEntries(NamedTuple):
    """Sequence numbers up to `last`, ascending.

    `payments` were created with one of the names as their user, `texts` hold a name as a whole
    value, `free_texts` hold any text that people wrote, and `damaged` can't be read. Some may since
    have been removed, or no longer name the person.
    """

    last: int
    payments: list[int]
    texts: list[int]
    free_texts: list[int]
    damaged: list[int]


def find_naming(source: JournalSource, account: int, names: Iterable[str]) -> NamingEntries:
    """Find the entries that may have one of these names. An index that can't be used gives none, up
    to 0. Blocking.
    """
    names = list(names)
    try:
        with open_index(source, account) as index:
            followed = read_index_place(index.connection)
            if is_current(index.connection) and is_of(followed, index.tail):
                return _find_naming(index, names)
    except sqlite3.Error:
        pass
    return NamingEntries(0, [], [], [], [])


def _find_naming(index: AccountIndex, names: Iterable[str]) -> NamingEntries:
    users = [(Facet.USER, name) for name in names]
    addresses = [(Facet.EMAIL, name.lower()) for name in names]
    texts = [text_term(name) for name in names]
    # A payment whose name was updated is found by its former name under `texts`.
    return NamingEntries(
        index.last,
        _having(index, [*users, *addresses, *texts]),
        _having(index, texts),
        _having(index, [(Facet.FREE_TEXT, NO_VALUE)]),
        _having(index, [(Facet.DAMAGED, NO_VALUE)]),
    )


def _having(index: AccountIndex, terms: Iterable[Term]) -> list[int]:
    """Return the sequence numbers that have at least one of the terms."""
    blocks = [*range(block_of(index.last) + 1)]
    found: set[int] = set()
    for facet, text in terms:
        stored = index.stored_in(facet, index.value(facet, text), blocks)
        for block, members in stored.items():
            found.update(descending(block, unpack(members)))
    return sorted(found)
