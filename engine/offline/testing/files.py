"""Rule files, checked among those near them, with the texts that their spans mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tollkeeper.engine.offline.rule_files import known_files, rule_files
from tollkeeper.engine.programs.compile.explain import Sources
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import Known
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import EventType, Program
from tollkeeper.grammar.render import Source, as_text
from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Library:
    """What files can refer to among themselves, and the texts of it by name."""

    known: Known
    texts: Sources


@dataclass(frozen=True, slots=True, eq=False)
class RuleFile:
    """A file without errors, as it was read once.

    `texts` has its own text under None, those of definitions and event types by their names;
    `events` are the event types near it. `folder` has the files that its tests are given, None when
    the text came alone.
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
        """What the author wrote there, on one line."""
        return one_line(self.text[span.start : span.end])


class BrokenFileError(Exception):
    """A file with errors; its words are the diagnostics."""

    def __init__(self, path: Path, text: str, found: tuple[Diagnostic, ...]) -> None:
        errors = [each for each in found if each.severity == "error"]
        super().__init__(as_text(Source.of(str(path), text), errors).rstrip())


def library_of(paths: Iterable[Path]) -> Library:
    """What the rule files among the paths declare for one another."""
    files = rule_files(paths)
    known = known_files(files)
    texts: dict[str | None, str] = {}
    for path in files:
        if path.stem in known.definitions or path.stem in known.events:
            texts[path.stem] = path.read_bytes().decode("utf-8", "replace")
    return Library(known, texts)


def load_file(path: Path, library: Library) -> RuleFile:
    """Raises `BrokenFileError`."""
    return _load(path, path.parent, path.read_bytes(), library)


def load_text(content: bytes, library: Library) -> RuleFile:
    """A file that came as a text alone. Raises `BrokenFileError`."""
    return _load(Path("text"), None, content, library)


def _load(path: Path, folder: Path | None, content: bytes, library: Library) -> RuleFile:
    reading = read_file(content, library.known)
    if reading.program is None:
        raise BrokenFileError(path, reading.text, reading.diagnostics)
    texts: dict[str | None, str] = {}
    texts |= reading.shipped.items()
    texts |= {**library.texts, None: reading.text}
    events = {**library.known.events}
    if isinstance(reading.program, EventType):
        events[reading.program.name] = reading.program
    return RuleFile(path, folder, reading.program, texts, events)
