"""Signatures of functions and aggregates, and the argument that the author is writing."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS, Aggregate, Function
from tollkeeper.grammar.parser import parse


@dataclass(frozen=True, slots=True)
class CallPlace:
    """The call around a place: what may be called, and the argument's index from 0."""

    callables: tuple[Function | Aggregate, ...]
    argument: int


def signature(of: Function | Aggregate) -> str:
    """Return the signature as the reference shows it, with the parameters' names."""
    if isinstance(of, Aggregate):
        value = "records" if of.value is None else "records.field"
        return f"{of.name}({value} [by KEY, …] [over DURATION] [where CONDITION])"
    written = [
        f"{each.name} …" if each.repeated else f"[{each.name}]" if each.optional else each.name
        for each in of.parameters
    ]
    return f"{of.name}({', '.join(written)})"


def named(name: str) -> tuple[Function | Aggregate, ...]:
    """Return the function and the aggregate of this name."""
    tables = (AGGREGATES, FUNCTIONS)
    return tuple(table[name] for table in tables if name in table)


def call_at(text: str, offset: int) -> CallPlace | None:
    """Return the innermost open call at the offset."""
    pieces = parse(text[:offset]).pieces
    depth, argument = 0, 0
    for index in range(len(pieces) - 1, 0, -1):
        kind = pieces[index].kind
        if kind in ("RPAR", "RSQB"):
            depth += 1
        elif kind in ("LPAR", "LSQB") and depth:
            depth -= 1
        elif kind == "LPAR":
            found = named(pieces[index - 1].text) if pieces[index - 1].kind == "NAME" else ()
            if found:
                return CallPlace(found, argument)
            argument = 0
        elif kind == "COMMA" and not depth:
            argument += 1
        elif kind == "LSQB":
            argument = 0
    return None
