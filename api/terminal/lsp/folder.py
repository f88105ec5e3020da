"""The rule files of an editor's folder: those on disk, replaced by newer texts of open ones."""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.offline.rule_files import is_shared, known_contents
from tollkeeper.engine.programs import shipped_definitions as shipped
from tollkeeper.engine.programs.source import with_shipped
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import MAX_FILE_BYTES, parse
from tollkeeper.grammar.services.document import Document, Neighbour, read_document

FileState: TypeAlias = tuple[int, int]
"""When a file was written, in nanoseconds, and its size."""

MAX_FILES = 2_000
"""The most files on disk that are read."""

MAX_FOLDERS = 5_000
"""The most folders that are searched, since an editor may have a whole home folder open."""

MAX_READ = 256
"""The most parsed files that are cached."""


class Folder:
    """The files under some roots.

    `revision` counts changes, so that files are parsed only after a change; `closed_revision`
    counts those to files that aren't open.
    """

    def __init__(self) -> None:
        self.roots: list[Path] = []
        self.open: dict[Path, str] = {}
        self.revision = 0
        self.closed_revision = 0
        self._looked = -1
        self._seen: dict[Path, FileState] = {}
        self._on_disk: dict[Path, str] = {}
        self._documents: OrderedDict[Path, tuple[int, Document]] = OrderedDict()
        self._shared: tuple[tuple[Path, str], ...] | None = None
        self._known = KnownNames()
        self._neighbours: tuple[Neighbour, ...] = ()

    def scan(self) -> None:
        """Look for changes on disk."""
        seen = dict(_rule_files(self.roots))
        if seen != self._seen:
            same = {path for path, state in seen.items() if self._seen.get(path) == state}
            new = {path: _text(path) for path in seen.keys() - same}
            unchanged = {path: self._on_disk[path] for path in same if path in self._on_disk}
            self._seen = seen
            self._on_disk = unchanged | {
                path: text for path, text in new.items() if text is not None
            }
            self.revision += 1
            self.closed_revision += 1

    def write(self, path: Path, text: str) -> None:
        """Set the editor's text of a file."""
        if self.open.get(path) != text:
            self.open[path] = text
            self.revision += 1

    def close(self, path: Path) -> None:
        """Use the file on disk again."""
        self.open.pop(path, None)
        self._documents.pop(path, None)
        self.revision += 1
        self.closed_revision += 1

    def text(self, path: Path) -> str | None:
        return self.open.get(path, self._on_disk.get(path))

    def paths(self) -> list[Path]:
        return sorted({*self._on_disk, *self.open})

    def naming(self, name: str) -> Iterator[tuple[Path, Document]]:
        """Yield the files that contain a name; shipped ones last."""
        paths = [path for path in self.paths() if name in (self.text(path) or "")]
        yield from ((path, self.document(path)) for path in paths)
        for path, each in _shipped_files():
            if each in self._neighbours and path not in paths and name in each.text:
                yield path, read_document(each.text, full_vocabulary(), KnownNames())

    def document(self, path: Path) -> Document:
        """Return a file, parsed in the context of the others; an unknown file is empty."""
        revision, found = self._documents.get(path, (-1, None))
        if found is None or revision != self.revision:
            self._look_around()
            text, neighbours = self.text(path) or "", self._neighbours
            if found is None or not _is_same(found, text, neighbours):
                found = read_document(text, full_vocabulary(), self._known, neighbours)
            else:
                found = replace(found, around={each.key: each for each in neighbours})
            self._documents[path] = (self.revision, found)
        self._documents.move_to_end(path)
        while len(self._documents) > MAX_READ:
            self._documents.popitem(last=False)
        return found

    def added_error(self, texts: Mapping[Path, str], names: Iterable[str]) -> str | None:
        """Return an error that a file with one of these names would get from the new texts."""
        changed = Folder()
        changed.open = {**self._on_disk, **self.open, **texts}
        changed.revision = self.revision + 1
        for path in self.paths():
            if any(name in (self.text(path) or "") for name in names):
                before = Counter(each.code for each in _errors(self.document(path)))
                after = _errors(changed.document(path))
                added = Counter(each.code for each in after) - before
                if added:
                    message = next(each.message for each in after if each.code in added)
                    return f"{path.name}: {message}"
        return None

    def known(self) -> KnownNames:
        """Return what the folder's definitions and event types declare, and the shipped ones."""
        self._look_around()
        return self._known

    def shared_texts(self) -> dict[str, str]:
        """Return the texts of the files in `known` by name."""
        self._look_around()
        return {each.name: each.text for each in self._neighbours}

    def _look_around(self) -> None:
        if self._looked == self.revision:
            return
        self._looked = self.revision
        texts = ((path, self.text(path) or "") for path in self.paths())
        shared = tuple((path, text) for path, text in texts if is_shared(text))
        if shared == self._shared:
            return
        own = known_contents(text.encode("utf-8", "replace") for _, text in shared)
        self._known, _ = with_shipped(own, tuple(shipped.shipped_definitions()))
        neighbours = {each.key: each for _, each in _shipped_files()}
        neighbours |= {
            each.key: each for _, text in shared if (each := _neighbour(text)) is not None
        }
        self._shared, self._neighbours = shared, tuple(neighbours.values())
        self.closed_revision += 1


def _errors(document: Document) -> list[Diagnostic]:
    return [each for each in document.diagnostics if each.severity == "error"]


def _is_same(document: Document, text: str, neighbours: tuple[Neighbour, ...]) -> bool:
    """Whether parsing again would give the same result: only files that a text names can change it."""
    if document.text != text:
        return False
    now = {each.key: each.text for each in neighbours if each.name in text}
    return now == {key: each.text for key, each in document.around.items() if each.name in text}


@lru_cache(maxsize=MAX_FILES)
def _neighbour(text: str) -> Neighbour | None:
    file = parse(text).file
    return None if file is None else Neighbour(file, text)


def _shipped_files() -> Iterator[tuple[Path, Neighbour]]:
    for name, each in shipped.shipped_definitions().items():
        found = _neighbour(each.text)
        assert found is not None
        yield shipped.FOLDER / f"{name}.rule", found


def _rule_files(roots: Iterable[Path]) -> Iterator[tuple[Path, FileState]]:
    """Yield the rule files under the roots, except in hidden folders and `node_modules`."""
    folders = files = 0
    for root in roots:
        for folder, inner, names in os.walk(root):
            inner[:] = sorted(each for each in inner if each[0] != "." and each != "node_modules")
            folders += 1
            for name in sorted(each for each in names if each.endswith(SUFFIX)):
                path = Path(folder, name)
                with suppress(OSError):
                    state = path.stat()
                    if S_ISREG(state.st_mode):
                        yield path, (state.st_mtime_ns, state.st_size)
                        files += 1
            if files >= MAX_FILES or folders >= MAX_FOLDERS:
                return


def _text(path: Path) -> str | None:
    """Return a file's text, if it can be a rule file."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(MAX_FILE_BYTES + 1).decode("utf-8", "replace")
    return None
