"""All that a rule can name, in words: fields, functions, aggregates, shipped velocities."""

from __future__ import annotations

from collections.abc import Iterator

from tollkeeper.engine.facts.reference import NamedField, every_field
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.shipped_definitions import shipped_definitions
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS, Function


def every_name() -> tuple[NamedField, ...]:
    """Each as a rule writes it, with its type and its meaning."""
    return (*every_field(), *_functions(), *_aggregates(), *_shipped_lets())


def _functions() -> Iterator[NamedField]:
    for each in FUNCTIONS.values():
        yield NamedField(f"{each.name}({_parameters(each)})", each.gives, each.doc)


def _parameters(function: Function) -> str:
    return ", ".join(
        f"[{each.name}]" if each.optional else f"{each.name}…" if each.repeated else each.name
        for each in function.parameters
    )


def _aggregates() -> Iterator[NamedField]:
    for each in AGGREGATES.values():
        yield NamedField(f"{each.name}(… by …)", each.gives, f"{each.doc} As in {each.example}")


def _shipped_lets() -> Iterator[NamedField]:
    for name, (program, text) in shipped_definitions().items():
        for let in program.lets:
            start, end = let.value.span
            yield NamedField(let.name, f"use {name}", one_line(text[start:end]))
