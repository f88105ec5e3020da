"""How often an account's payments have each field, and its common values, for authors of rules.

Values are given of enums, booleans and numbers only: never of a text, an address or an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from statistics import quantiles
from typing import Any

from msgspec import Struct

from tollkeeper.engine.facts.fields_read import facts_decoder
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.programs.compile.interpreter import field_value
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.read_folder import read_folder
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Field

MOST = 2_000
"""The number of newest payments that are read."""
COMMONEST = 3
_SCALARS = (t.Boolean, t.Number, t.String, t.Ip, t.Instant)


class FieldFigure(Struct, frozen=True):
    """`share` is the share of `payments` that have the field.

    `common` are the most common values, with their shares of the payments that have the field;
    `quarters` are a number's quartiles.
    """

    payments: int
    share: float
    common: dict[str, float] = {}
    quarters: tuple[str, ...] = ()


def account_figures(
    _progress: Progress, source: JournalSource, account: int
) -> dict[str, FieldFigure]:
    """`field_figures`, as a job in another process. Raises `JournalError`."""
    return read_folder(source, lambda picture: field_figures(picture.journal, account))


async def field_figures(journal: Journal, account: int) -> dict[str, FieldFigure]:
    """Return the figures by field name, over the newest payments as they were created; empty
    without payments.
    """
    entries: list[Entry] = []
    cursor: int | None = None
    while len(entries) < MOST:
        page = await journal.latest(account, Kind.PAYMENT, cursor=cursor, limit=MOST - len(entries))
        entries += page.entries
        cursor = page.cursor
        if cursor is None:
            break
    fields = full_vocabulary().payment
    scalars = {name: field for name, field in fields.items() if isinstance(field.type, _SCALARS)}
    facts_of = facts_decoder(field.access for field in scalars.values())
    facts = [facts_of(entry) for entry in entries]
    return {name: _figure(facts, field, fields) for name, field in scalars.items()} if facts else {}


def _figure(facts: list[Any], field: Field, fields: Mapping[str, Field]) -> FieldFigure:
    read = (field_value(each, fields, field.path) for each in facts)
    there = [value for value in read if value is not None]
    share = len(there) / len(facts)
    match field.type:
        case t.Boolean() | t.String(choices=tuple()):
            counted = Counter(map(_word, there)).most_common(COMMONEST)
            common = {word: count / len(there) for word, count in counted}
            return FieldFigure(len(facts), share, common)
        case t.Number(scale=scale) if len(there) > 1:
            quarters = tuple(_number(each, scale) for each in quantiles(there, n=4))
            return FieldFigure(len(facts), share, quarters=quarters)
        case _:
            return FieldFigure(len(facts), share)


def _word(value: bool | str) -> str:
    return value if isinstance(value, str) else "true" if value else "false"


def _number(value: float, scale: int | None) -> str:
    return f"{value:g}" if scale is None else f"{Decimal(round(value)).scaleb(-scale):f}"
