"""A public name stands for one thing in the whole tree, so that it can be searched for."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tollkeeper.tests.architecture.trees import tree

ROOT = Path(__file__).parents[2]

ONE_CONCEPT = {
    "CompiledSeries": "a series as the windows call it, and as the compiler makes it",
    "Record": "a record of the history; a group of fields in the language, which stored programs name",
    "Series": "a series as a program declares it, and as the windows keep it",
    "out_of_range": "the wording of one error, in a rule and in a request",
}
"""Names that stand for one concept in two forms, and which these are."""

OF_EVERY_MODULE = {"T", "log", "main"}
"""A type variable, a logger, and what a process starts with."""

CHECKER, COMPILER = "grammar", "engine/programs"
"""They have one function for each construct of the language, and both name it for the construct."""


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts[:-1]
    return "/".join(parts[:2]) if parts[0] in ("engine", "api") else parts[0]


def modules() -> Iterator[tuple[str, ast.Module]]:
    for top in ("grammar", "engine", "api"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield room(path), tree(path)


def public_names(module: ast.Module) -> Iterator[tuple[str, bool]]:
    """The names that a module defines, and whether each is a function's."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found = [(name, True)]
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found = [(name, False)]
            case ast.Assign(targets=targets):
                found = [(each.id, False) for each in targets if isinstance(each, ast.Name)]
            case _:
                found = []
        yield from (each for each in found if not each[0].startswith("_"))


def test_no_public_name_stands_for_two_things_in_two_rooms():
    rooms: defaultdict[str, set[str]] = defaultdict(set)
    for where, module in modules():
        for name, is_function in public_names(module):
            # A handler or a command is named for the engine's verb that it calls.
            if not (is_function and where.startswith("api")):
                rooms[name].add(where)
    shared = {
        name: sorted(found)
        for name, found in rooms.items()
        if len(found) > 1
        and name not in OF_EVERY_MODULE
        and not (name.islower() and found == {CHECKER, COMPILER})
    }
    assert shared.keys() == ONE_CONCEPT.keys(), {
        name: shared.get(name) for name in shared.keys() ^ ONE_CONCEPT.keys()
    }


def test_no_cache_is_kept_by_the_identity_of_an_object():
    """An object's address is another's as soon as it is gone."""
    found = [
        f"{where}: {ast.unparse(node)}"
        for where, module in modules()
        for statement in module.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
        if is_identity(node)
    ]
    caches = [
        f"{where}: {ast.unparse(node)}"
        for where, module in modules()
        for cache in module_dictionaries(module)
        for node in ast.walk(module)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == cache
        and any(map(is_identity, ast.walk(node.slice)))
    ]
    assert found + caches == []


def is_identity(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id"


def module_dictionaries(module: ast.Module) -> set[str]:
    """The names of a module's own dictionaries."""
    names = set()
    for node in module.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Dict | ast.DictComp) or (
            isinstance(value, ast.Call) and "dict" in ast.unparse(value.func).lower()
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id for each in targets if isinstance(each, ast.Name)}
    return names
