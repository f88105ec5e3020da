"""Rule files on disk: find them, check them, and collect the names they can refer to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from shutil import copymode
from tempfile import NamedTemporaryFile
from typing import NamedTuple, TypeAlias

from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.programs.source import find_all, read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.fixes import applied_safely
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.parser import MAX_FILE_BYTES, parse_bytes
from tollkeeper.grammar.program import Definitions, EventType, Program
from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax_errors import file_too_large

FILES_A_PROCESS = 20
"""From this many files on, another process is started to check them."""

_SHARED = re.compile(r"\ufeff?(?:\s|#[^\n]*(?:\n|\Z))*+(?:definitions|event)\b")

CheckedFile: TypeAlias = tuple[Source, tuple[Diagnostic, ...]]


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The rule files among the paths and in the folders among them, each once, sorted.

    What only has the name of one, such as a folder, a pipe or a link that leads nowhere, is none.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(each for each in path.rglob(f"*{SUFFIX}") if each.is_file())
        else:
            found.add(path)
    return sorted(found)


def check_files(paths: Sequence[Path]) -> list[CheckedFile]:
    """Check each rule file among the paths."""
    files = rule_files(paths)
    check = partial(_check_file, known_beside(paths))
    workers = min(os.cpu_count() or 1, len(files) // FILES_A_PROCESS)
    if workers < 2:
        return list(map(check, files))
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(check, files, chunksize=FILES_A_PROCESS))


def _check_file(known: KnownNames, path: Path) -> CheckedFile:
    reading = read_file(path.read_bytes(), known)
    return Source.of(str(path), reading.text), reading.diagnostics


def fix_files(paths: Sequence[Path]) -> list[Path]:
    """Apply the safe fixes to each rule file among the paths; returns those that changed."""
    known = known_beside(paths)
    changed = []
    for path in rule_files(paths):
        content = path.read_bytes()
        text = content.decode("utf-8", "replace")
        fixed = applied_safely(text, partial(find_all, known=known))
        if fixed != text:
            replace_file(path, fixed)
            changed.append(path)
    return changed


class FormattedFile(NamedTuple):
    """A file's text and its formatted text: None, with the diagnostics, when it can't be formatted."""

    text: str
    formatted: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def formatted_file(path: Path) -> FormattedFile:
    content = path.read_bytes()
    text, parsed = content.decode("utf-8", "replace"), parse_bytes(content)
    if parsed.diagnostics:
        return FormattedFile(text, None, parsed.diagnostics)
    try:
        return FormattedFile(text, format_file(text))
    except ValueError:
        return FormattedFile(text, None, (file_too_large(MAX_FILE_BYTES),))


def replace_file(path: Path, text: str) -> None:
    """Replace a file's text atomically."""
    place = path.resolve()
    with NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as new:
        try:
            new.write(text.encode())
            new.flush()
            os.fsync(new.fileno())
            copymode(place, new.name)
            Path(new.name).replace(place)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def last_written(paths: Iterable[Path]) -> dict[Path, int]:
    """When each rule file among the paths was last written, in nanoseconds."""
    return {path: path.stat().st_mtime_ns for path in rule_files(paths) if path.exists()}


def known_beside(paths: Iterable[Path]) -> KnownNames:
    """The names that files can refer to: everything declared in their folders and below."""
    return known_files(rule_files(path if path.is_dir() else path.parent for path in paths))


def known_files(files: Sequence[Path]) -> KnownNames:
    """The definitions and event types that these files declare; None for one with errors."""
    return known_contents(path.read_bytes() for path in files)


def known_contents(contents: Iterable[bytes]) -> KnownNames:
    """The same from the files' contents."""
    definitions: dict[str, Definitions | None] = {}
    events: dict[str, EventType | None] = {}
    for content in contents:
        if not is_shared(content.decode("utf-8", "replace")):
            continue
        program = _read_alone(content)
        if isinstance(program, Definitions):
            definitions[program.name] = program
        elif isinstance(program, EventType):
            events[program.name] = program
    return KnownNames(definitions=definitions, events=events)


def is_shared(text: str) -> bool:
    """Whether a text begins like a file that others can refer to."""
    return _SHARED.match(text) is not None


@lru_cache(maxsize=2_000)
def _read_alone(content: bytes) -> Program | None:
    return read_file(content, KnownNames()).program


def used_definitions(files: Sequence[Path], names: Sequence[str]) -> dict[str, str]:
    """The texts of the definitions of these names, by name."""
    found = {}
    for path in files:
        reading = read_file(path.read_bytes(), KnownNames())
        if isinstance(reading.program, Definitions) and reading.program.name in names:
            found[reading.program.name] = reading.text
    return found
