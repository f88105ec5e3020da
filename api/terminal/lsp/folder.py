"""The rule files that an editor has before it: those on disk, and those open with newer text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.rule_files import is_shared, known_contents, rule_files
from tollkeeper.engine.programs import shipped_definitions as shipped
from tollkeeper.engine.programs.source import with_shipped
from tollkeeper.grammar.checker import Known
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.services.document import Document, Neighbour, read_document

MAX_FILES = 2_000
"""The most files on disk that are looked at."""

MAX_READ = 256
"""The most files that are kept as they were read."""


class Folder:
    """The files under some roots.

    `revision` counts what has changed, so that nothing is read twice; `closed_revision` what has
    changed for the files that are not open.
    """

    def __init__(self) -> None:
        self.roots: list[Path] = []
        self.open: dict[Path, str] = {}
        self.revision = 0
        self.closed_revision = 0
        self._looked = -1
        self._on_disk: dict[Path, str] = {}
        self._documents: OrderedDict[Path, tuple[int, Document]] = OrderedDict()
        self._shared: tuple[tuple[Path, str], ...] | None = None
        self._known = Known()
        self._neighbours: tuple[Neighbour, ...] = ()

    def scan(self) -> None:
        """Looks at the disk again."""
        found = rule_files(root for root in self.roots if root.is_dir())[:MAX_FILES]
        texts = {path: text for path in found if (text := _text(path)) is not None}
        if texts != self._on_disk:
            self._on_disk = texts
            self.revision += 1
            self.closed_revision += 1

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
        self.closed_revision += 1

    def text(self, path: Path) -> str | None:
        return self.open.get(path, self._on_disk.get(path))

    def paths(self) -> list[Path]:
        return sorted({*self._on_disk, *self.open})

    def naming(self, name: str) -> Iterator[tuple[Path, Document]]:
        """The files that hold a name somewhere; those that come with the service last."""
        paths = [path for path in self.paths() if name in (self.text(path) or "")]
        yield from ((path, self.document(path)) for path in paths)
        for path, each in _shipped():
            if each in self._neighbours and path not in paths and name in each.text:
                yield path, read_document(each.text, full_vocabulary(), Known())

    def document(self, path: Path) -> Document:
        """The file, read among the others; an unknown one is empty."""
        revision, found = self._documents.get(path, (-1, None))
        if found is None or revision != self.revision:
            self._look_around()
            text, near = self.text(path) or "", self._neighbours
            if found is None or not _is_same(found, text, near):
                found = read_document(text, full_vocabulary(), self._known, near)
            else:
                found = replace(found, around={each.key: each for each in near})
            self._documents[path] = (self.revision, found)
        self._documents.move_to_end(path)
        while len(self._documents) > MAX_READ:
            self._documents.popitem(last=False)
        return found

    def known(self) -> Known:
        """What the definitions and event types of the folder declare, and those that ship."""
        self._look_around()
        return self._known

    def shared_texts(self) -> dict[str, str]:
        """The texts of what `known` declares, by name."""
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
        near = {each.key: each for _, each in _shipped()}
        near |= {each.key: each for _, text in shared if (each := _neighbour(text)) is not None}
        self._shared, self._neighbours = shared, tuple(near.values())
        self.closed_revision += 1


def _is_same(document: Document, text: str, near: tuple[Neighbour, ...]) -> bool:
    """Whether reading again would find the same: what a file doesn't name can't change it."""
    if document.text != text:
        return False
    now = {each.key: each.text for each in near if each.name in text}
    return now == {key: each.text for key, each in document.around.items() if each.name in text}


@lru_cache(maxsize=MAX_FILES)
def _neighbour(text: str) -> Neighbour | None:
    file = parse(text).file
    return None if file is None else Neighbour(file, text)


def _shipped() -> Iterator[tuple[Path, Neighbour]]:
    for name, each in shipped.shipped_definitions().items():
        found = _neighbour(each.text)
        assert found is not None
        yield shipped.FOLDER / f"{name}.rule", found


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
