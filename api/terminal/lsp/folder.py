"""The rule files that an editor has before it: those on disk, and those open with newer text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.rule_files import known_contents, rule_files
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.checker import Known
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.services.document import Document, read_document

MAX_FILES = 2_000
"""The most files on disk that are looked at."""


class Folder:
    """The files under some roots; `revision` counts what has changed, so that nothing is read twice."""

    def __init__(self) -> None:
        self.roots: list[Path] = []
        self.open: dict[Path, str] = {}
        self.revision = 0
        self._on_disk: dict[Path, str] = {}
        self._documents: dict[Path, tuple[int, Document]] = {}
        self._neighbours: tuple[int, Known, tuple[s.File, ...]] | None = None

    def scan(self) -> None:
        """Looks at the disk again."""
        found = rule_files(root for root in self.roots if root.is_dir())[:MAX_FILES]
        texts = {path: text for path in found if (text := _text(path)) is not None}
        if texts != self._on_disk:
            self._on_disk = texts
            self.revision += 1

    def write(self, path: Path, text: str) -> None:
        """Takes what the editor shows for a file."""
        if self.open.get(path) != text:
            self.open[path] = text
            self.revision += 1

    def close(self, path: Path) -> None:
        """Takes what is on disk for a file again."""
        self.open.pop(path, None)
        self._documents.pop(path, None)
        self.revision += 1

    def text(self, path: Path) -> str | None:
        return self.open.get(path, self._on_disk.get(path))

    def paths(self) -> list[Path]:
        return sorted({*self._on_disk, *self.open})

    def document(self, path: Path) -> Document:
        """The file, read among the others; an unknown one is empty."""
        revision, found = self._documents.get(path, (-1, None))
        if found is None or revision != self.revision:
            known, files = self._around()
            text = self.text(path) or ""
            if found is None or not _is_same(found, text, files):
                found = read_document(text, full_vocabulary(), known, files)
            self._documents[path] = (self.revision, found)
        return found

    def documents(self) -> Iterator[Document]:
        return (self.document(path) for path in self.paths())

    def known(self) -> Known:
        """What the definitions and event types of the folder declare."""
        return self._around()[0]

    def _around(self) -> tuple[Known, tuple[s.File, ...]]:
        if self._neighbours is None or self._neighbours[0] != self.revision:
            texts = [self.text(path) or "" for path in self.paths()]
            shared = [text for text in texts if _may_be_shared(text)]
            known = known_contents(text.encode("utf-8", "replace") for text in shared)
            files = tuple(file for text in shared if (file := _file(text)) is not None)
            self._neighbours = (self.revision, known, files)
        return self._neighbours[1:]


def _is_same(document: Document, text: str, files: tuple[s.File, ...]) -> bool:
    """Whether reading again would find the same; unchanged files are the same objects."""
    around = document.around.values()
    return document.text == text and {id(each) for each in around} == {id(each) for each in files}


def _may_be_shared(text: str) -> bool:
    return text.lstrip().startswith(("definitions", "event", "#"))


@lru_cache(maxsize=256)
def _file(text: str) -> s.File | None:
    file = parse(text).file
    return file if file is not None and file.kind in ("definitions", "event") else None


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
