"""Compile the keys of groups, for reads and for counting records."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tollkeeper.engine.programs.compile.code import Code, tuple_of
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.expressions import value, write_routines
from tollkeeper.engine.programs.compile.unit import Unit, count_reads, finish_unit, module
from tollkeeper.engine.velocity.contract import Key as Key
from tollkeeper.grammar import program as p
from tollkeeper.grammar.vocabulary import Vocabulary


def compile_keys(
    parameters: tuple[str, ...],
    keys: Sequence[tuple[p.Expression, ...]],
    digests: Digests,
    vocabulary: Vocabulary,
) -> Callable[..., tuple[Key | None, ...]]:
    """A function that gives each tuple of keys, None where one of them is missing."""
    roots = [part for parts in keys for part in parts]
    made = module(parameters, roots, digests, (), vocabulary)
    unit = Unit(made, count_reads(roots, made))
    found = []
    for parts in keys:
        values = [unit.require(value(unit, part)) for part in parts]
        write_routines(made)
        needs = tuple(need for each in values for need in each.needs)
        whole = Code(tuple_of([Code(each.result) for each in values]), needs)
        found.append(unit.assign("key", whole))
    return finish_unit(unit, tuple_of(found))
