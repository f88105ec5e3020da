"""Rule files, checked together with those they can refer to, and their source texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.offline.rule_files import known_files, rule_files
from tollkeeper.engine.programs.compile.explain import Sources
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.source import FileReading, read_file
from tollkeeper.engine.registry.known import StoredNames, known_names, stored_names
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.versions import active_version
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import EventType, Program
from tollkeeper.grammar.render import Source, as_text
from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Library:
    """The names that files can refer to, and the texts of their definitions by name."""

    known: KnownNames
    texts: Sources


@dataclass(frozen=True, slots=True)
class StoredLibrary:
    """A library as an account stores it. It is packed for another process in microseconds, which
    decodes its programs: thousands of lines may take a second.
    """

    names: StoredNames
    texts: Sources


@dataclass(frozen=True, slots=True, eq=False)
class RuleFile:
    """A file without errors.

    `texts` has its own text under None, those of definitions and event types by their names;
    `events` are the event types that it can refer to. `folder` has the files that its tests use,
    None for a text without a folder.
    """

    path: Path
    folder: Path | None
    program: Program
    texts: Sources
    events: Mapping[str, EventType | None]

    @property
    def text(self) -> str:
        return self.texts[None]

    def line(self, span: Span) -> int:
        """The line, from 1, on which a span begins."""
        return Source.of("", self.text).position(span.start).line

    def written(self, span: Span) -> str:
        """The source text of a span, on one line."""
        return one_line(self.text[span.start : span.end])


class BrokenFileError(Exception):
    """A file with errors; the message has the diagnostics."""

    def __init__(self, path: Path, text: str, found: tuple[Diagnostic, ...]) -> None:
        errors = [each for each in found if each.severity == "error"]
        super().__init__(as_text(Source.of(str(path), text), errors).rstrip())


def library_of(paths: Iterable[Path]) -> Library:
    """The library of the rule files among the paths."""
    files = rule_files(paths)
    known = known_files(files)
    texts: dict[str | None, str] = {}
    for path in files:
        if path.stem in known.definitions or path.stem in known.events:
            texts[path.stem] = path.read_bytes().decode("utf-8", "replace")
    return Library(known, texts)


def stored_library(account: Account) -> StoredLibrary:
    """The library of an account: its published definitions and event types, and its lists."""
    texts: dict[str | None, str] = {}
    for kind, name in account.files:
        version = active_version(account, kind, name)
        if version is not None and kind in ("definitions", "event"):
            texts[name] = version.text
    return StoredLibrary(stored_names(account), texts)


def read_library(stored: StoredLibrary) -> Library:
    """Decode a stored library."""
    return Library(known_names(stored.names), stored.texts)


def load_file(path: Path, library: Library) -> RuleFile:
    """Raises `BrokenFileError`."""
    reading = read_file(path.read_bytes(), library.known)
    if reading.program is None:
        raise BrokenFileError(path, reading.text, reading.diagnostics)
    return _load_file(path, path.parent, reading, reading.program, library)


def load_alone(reading: FileReading, program: Program, library: Library) -> RuleFile:
    """The file of a text without a folder, from its reading and program."""
    return _load_file(Path(f"{program.name}{SUFFIX}"), None, reading, program, library)


def _load_file(
    path: Path, folder: Path | None, reading: FileReading, program: Program, library: Library
) -> RuleFile:
    texts: dict[str | None, str] = {}
    texts |= reading.shipped.items()
    texts |= {**library.texts, None: reading.text}
    events = {**library.known.events}
    if isinstance(program, EventType):
        events[program.name] = program
    return RuleFile(path, folder, program, texts, events)
