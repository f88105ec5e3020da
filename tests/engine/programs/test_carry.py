"""What another process compiled is what this one would have."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.programs.active import Loaded
from tollkeeper.engine.programs.carry import pack_loaded, unpack_loaded
from tollkeeper.engine.programs.compile.code import GENERATED
from tollkeeper.engine.programs.load import SHIPPED, load_program
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.state import Version
from tollkeeper.engine.registry.versions import encode_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Definitions

FILES = [SHIPPED / name for name in ("web_checkout.rule", "bot_behaviour.rule")] + [
    SHIPPED / "events" / "chargeback.rule",
    *sorted((SHIPPED / "examples").glob("*.rule")),
]
CHILD = "import pickle, sys; from tollkeeper.tests.engine.programs import test_carry as t;"


def loaded(path: Path) -> Loaded | None:
    reading = read_file(path.read_bytes(), KnownNames())
    program = reading.program
    if program is None or isinstance(program, Definitions):
        return None
    file = encode_file(program)
    stored = (file.kind, file.name, 1, reading.text, {}, "", 1, file.program, 0, "")
    return load_program(program, Version(*stored))


def packed() -> list[bytes | None]:
    found = [loaded(path) for path in FILES]
    return [None if each is None else pack_loaded(each) for each in found]


@pytest.fixture(scope="module")
def carried() -> list[Loaded | None]:
    """The files, as another process has compiled and packed them."""
    call = f"{CHILD} sys.stdout.buffer.write(pickle.dumps(t.packed()))"
    found = subprocess.run([sys.executable, "-c", call], capture_output=True, check=True)
    every = pickle.loads(found.stdout)
    return [None if each is None else unpack_loaded(each) for each in every]


def generated(value: Any, seen: dict[int, Any]) -> list[Any]:
    """The code of all functions that a loaded version holds, and the names that each space has."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        return [part for each in value for part in generated(each, seen)]
    if id(value) in seen or value is full_vocabulary():
        return []
    seen[id(value)] = value
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        if value.__code__.co_filename != GENERATED:
            return [value.__qualname__, *generated(cells, seen)]
        space = value.__globals__
        return [value.__code__, sorted(space), *generated(space, seen)]
    names = getattr(type(value), "__slots__", ()) or getattr(value, "__dict__", ())
    parts = [getattr(value, name) for name in names if hasattr(value, name)]
    return generated(parts, seen)


@pytest.mark.parametrize("index", range(len(FILES)), ids=lambda index: FILES[index].stem)
def test_every_function_of_a_shipped_file_is_the_same(
    carried: list[Loaded | None], index: int
) -> None:
    here, there = loaded(FILES[index]), carried[index]
    found = generated(here, {})
    assert found == generated(there, {})
    assert here is None or any(not isinstance(each, str | list) for each in found)


def test_a_closure_keeps_its_defaults() -> None:
    def made(amount: int) -> Any:
        def least(value: int, most: int = 5, *, factor: int = 2) -> int:
            return min(value, most) * factor * amount

        return least

    again: Any = unpack_loaded(pack_loaded(made(3)))
    assert (again(1), again(9), again(9, 7, factor=1)) == (6, 30, 21)
