"""Rule files on disk: which there are, and what they can refer to among themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tollkeeper.engine.checking import read_file
from tollkeeper.grammar.checker import Known
from tollkeeper.grammar.program import Definitions, EventType

SUFFIX = ".rule"


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The rule files among the paths and in the folders among them, each once, sorted."""
    found: set[Path] = set()
    for path in paths:
        found.update(path.rglob(f"*{SUFFIX}") if path.is_dir() else [path])
    return sorted(found)


def known_files(files: Sequence[Path]) -> Known:
    """The definitions and event types that these files declare; None for one with errors."""
    definitions: dict[str, Definitions | None] = {}
    events: dict[str, EventType | None] = {}
    for path in files:
        content = path.read_bytes()
        if not content.lstrip().startswith((b"definitions", b"event", b"#")):
            continue
        program = read_file(content, Known()).program
        if isinstance(program, Definitions):
            definitions[program.name] = program
        elif isinstance(program, EventType):
            events[program.name] = program
    return Known(definitions=definitions, events=events)


def used_definitions(files: Sequence[Path], names: Sequence[str]) -> dict[str, str]:
    """The texts of the definitions of these names, by name."""
    found = {}
    for path in files:
        reading = read_file(path.read_bytes(), Known())
        if isinstance(reading.program, Definitions) and reading.program.name in names:
            found[reading.program.name] = reading.text
    return found
