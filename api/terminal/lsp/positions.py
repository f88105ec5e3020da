"""Places of a text as the protocol counts them: lines, and UTF-16 units within a line, from 0."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types as lsp

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
