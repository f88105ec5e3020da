"""Loaded versions as bytes, from the process that compiles them to the one that decides.

Generated functions and closures are carried by their code, all else as pickle has it. Both
processes are of one service: the bytes are never stored, and never come from outside.
"""

from __future__ import annotations

import io
import marshal
import pickle
import sys
from types import CellType, FunctionType
from typing import Any

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.programs.active import Loaded
from tollkeeper.engine.programs.compile.code import GENERATED
from tollkeeper.grammar.regexes import TEST_OF, regex_test
from tollkeeper.grammar.vocabulary import Vocabulary


def pack_loaded(loaded: Loaded) -> bytes:
    """The bytes from which `unpack_loaded` makes the same version."""
    packed = io.BytesIO()
    _Packer(packed, pickle.HIGHEST_PROTOCOL).dump(loaded)
    return packed.getvalue()


def unpack_loaded(packed: bytes) -> Loaded:
    """The loaded version that another process of this service packed."""
    loaded: Loaded = pickle.loads(packed)  # noqa: S301 - from the service's own process
    return loaded


class _Packer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Vocabulary):
            return full_vocabulary, ()
        if not isinstance(value, FunctionType):
            return NotImplemented
        if (pattern := getattr(value, TEST_OF, None)) is not None:
            return regex_test, pattern
        code = value.__code__
        is_generated = code.co_filename == GENERATED
        if not is_generated and "<locals>" not in value.__qualname__:
            return NotImplemented
        space = value.__globals__ if is_generated else value.__module__
        cells = value.__closure__ or ()
        made = marshal.dumps(code), value.__qualname__, space, len(cells)
        contents = [cell.cell_contents for cell in cells]
        # Functions of one namespace call each other, so their contents come after all exist.
        held = contents, value.__defaults__, value.__kwdefaults__
        return _function, made, held, None, None, _fill


def _function(code: bytes, name: str, space: dict[str, Any] | str, cells: int) -> FunctionType:
    names = vars(sys.modules[space]) if isinstance(space, str) else space
    empty = tuple(CellType() for _ in range(cells))
    return FunctionType(marshal.loads(code), names, name, None, empty)  # noqa: S302 - as above


def _fill(
    made: FunctionType,
    held: tuple[list[Any], tuple[Any, ...] | None, dict[str, Any] | None],
) -> None:
    contents, made.__defaults__, made.__kwdefaults__ = held
    for cell, value in zip(made.__closure__ or (), contents, strict=True):
        cell.cell_contents = value
