"""The columns of `seen` with the programs' aggregates, and translations that use them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.recorded_lists import RecordedLists
from tollkeeper.engine.offline.columns.sql import DIALECT, NotExactError
from tollkeeper.engine.offline.columns.translate import Translation
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.grammar import types as t
from tollkeeper.grammar.program import History, Rule, Scorecard

_DIGITS, _WIDE, _MONEY = 18, 38, 15


def recorded_window(index: int, program: int) -> str:
    return f"recorded_{program}_{index}"


def read_window(index: int, program: int = 0) -> str:
    """The column with the values of a program's aggregate, as programs represent them."""
    return f"window_{program}_{index}"


def raw_window(index: int, program: int = 0) -> str:
    """The column with the values of a program's aggregate, in the form that an export has."""
    return f"raw_{program}_{index}"


def carried_window(kind: t.Type, column: str) -> str:
    """SQL for a window's values, represented as `grammar/types.py` says; NULL when out of range."""
    match kind:
        case t.Instant():
            return f"epoch_us({column})"
        case t.Number(scale=int(scale)) if 0 < scale < _DIGITS:
            # DuckDB gives a product of two narrow decimals no more digits than they have. Money leaves
            # room for those of the factor, and so is reckoned in 64 bits, which takes a tenth.
            fits, holds = (_MONEY, _DIGITS) if scale <= 2 else (_DIGITS, _WIDE)
            fitting = (
                f"CAST(TRY_CAST({column} AS DECIMAL({fits}, {scale})) AS DECIMAL({holds}, {scale}))"
            )
            return f"CAST({fitting} * {10**scale} AS BIGINT)"
        case _:
            return column


def translation_of(
    program: Rule | Scorecard,
    facts: FactRows,
    lists: RecordedLists | None = None,
    settings: Sequence[AccountSettings] = (),
    number: int = 0,
) -> Translation:
    """The translation of a program for the columns of `seen`; `settings` need its column
    `situation`, `lists` its `sequence` and `arrived`."""
    digests = Digests(program.lets)
    places = {digests.of(history): index for index, history in enumerate(program.histories)}

    def window(node: History) -> str:
        index = places[digests.of(node)]
        kind, read = node.type, read_window(index, number)
        if isinstance(kind, t.Number) and kind.scale:
            if kind.scale >= _DIGITS:
                raise NotExactError("decimals of many places")
            both = f"({raw_window(index, number)} IS NULL) = ({read} IS NULL)"
            translation.guards.append(exp.maybe_parse(both, dialect=DIALECT))
        return read

    translation = Translation(
        vocabulary=full_vocabulary(),
        facts=facts.names,
        lets=program.lets,
        window=window,
        lists=lists,
        settings=settings,
    )
    return translation
