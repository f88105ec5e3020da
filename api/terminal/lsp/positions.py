"""Positions as the protocol counts them: lines, and UTF-16 code units within a line, from 0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Places:
    """A text and the offsets of its lines."""

    source: Source

    @classmethod
    def of(cls, text: str) -> Places:
        return cls(Source.of("", text))

    def position(self, offset: int) -> lsp.Position:
        line = self.source.position(offset).line
        before = self.source.text[self.source.line_starts[line - 1] : offset]
        return lsp.Position(line - 1, units(before))

    def range(self, span: Span) -> lsp.Range:
        return lsp.Range(self.position(span.start), self.position(span.end))

    def offset(self, position: lsp.Position) -> int:
        """Return the offset of a position; one inside a character gives that character's start."""
        starts = self.source.line_starts
        if position.line >= len(starts):
            return len(self.source.text)
        start = starts[position.line]
        line = self.source.line(position.line + 1)
        left = position.character
        for index, character in enumerate(line):
            left -= units(character)
            if left < 0:
                return start + index
        return start + len(line)


def units(text: str) -> int:
    """Return the length in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


def path_of(uri: str) -> Path:
    """Return the path of a URI; an unsaved text has its URI as its path."""
    return Path(to_fs_path(uri) or uri)


def uri_of(path: Path) -> str:
    return (from_fs_path(str(path)) if path.is_absolute() else None) or str(path)
