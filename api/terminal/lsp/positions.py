"""Places of a text as the protocol counts them: lines, and UTF-16 units within a line, from 0."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Places:
    """A text with where its lines begin."""

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
        """The nearest place in the text: one in the middle of a character is that before it."""
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
    """The length in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


def path_of(uri: str) -> Path:
    """The file of a uri; a text that is in no file yet stands under its uri."""
    return Path(to_fs_path(uri) or uri)


def uri_of(path: Path) -> str:
    return from_fs_path(str(path)) or str(path)
