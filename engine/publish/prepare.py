"""The slow parts of publishing, for a worker process: checking a text and compiling a version hold
the interpreter for tens of milliseconds, in which payments would wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tollkeeper.engine.programs.carry import pack_loaded
from tollkeeper.engine.programs.load import load_program
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.publish.needs import AccountNeed, needs_of_program
from tollkeeper.engine.registry.known import StoredNames, known_names
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Version
from tollkeeper.engine.registry.versions import EncodedFile, encode_file
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Definitions, ListUse, TableUse


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text to be stored: `file` is None when it has errors; `uses` and `shipped` as in `FileReading`,
    `needs` the lists and rates that it needs."""

    text: str
    file: EncodedFile | None
    diagnostics: tuple[Diagnostic, ...]
    uses: tuple[str, ...]
    shipped: Mapping[str, str]
    needs: tuple[AccountNeed, ...]


@dataclass(frozen=True, slots=True)
class PreparedVersion:
    """The lists and tables that a version declares, and its program, ready to run, as `carry.py`
    packs it; None for definitions, which nothing runs."""

    lists: tuple[ListUse, ...]
    tables: tuple[TableUse, ...]
    loaded: bytes | None


def read_text(content: bytes, names: StoredNames) -> ReadText:
    """Parse, check and encode; never raises, whatever the bytes."""
    reading = read_file(content, known_names(names))
    program = reading.program
    file = None if program is None else encode_file(program)
    needs = () if program is None else needs_of_program(program)
    return ReadText(reading.text, file, reading.diagnostics, reading.uses, reading.shipped, needs)


def prepare_version(version: Version) -> PreparedVersion:
    """Compile a version."""
    program = decode_program(version.program)
    is_run = not isinstance(program, Definitions)
    loaded = pack_loaded(load_program(program, version)) if is_run else None
    return PreparedVersion(program.lists, program.tables, loaded)


def find_needs(program: bytes) -> tuple[AccountNeed, ...]:
    """The lists and rates that an encoded program needs."""
    return needs_of_program(decode_program(program))
