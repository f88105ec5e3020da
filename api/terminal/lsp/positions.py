"""Positions as the protocol counts them: lines, and UTF-16 code units within a line, from 0."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax import Span

_WIDE = re.compile("[\U00010000-\U0010ffff]")
"""A character of two UTF-16 code units."""
_KEPT = 8
"""How many texts' places are kept: an answer asks for those of one text again and again."""


@dataclass(frozen=True, slots=True)
class Places:
    """A text, the offsets of its lines, and those of its characters of two units."""

    source: Source
    wide: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=_KEPT)
    def of(cls, text: str) -> Places:
        wide = tuple(found.start() for found in _WIDE.finditer(text))
        return cls(Source.of("", text), wide)

    def position(self, offset: int) -> lsp.Position:
        line, column = self.source.position(offset)
        start = offset - column + 1
        wide = bisect_left(self.wide, offset) - bisect_left(self.wide, start)
        return lsp.Position(line - 1, column - 1 + wide)

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
    return len(text) + len(_WIDE.findall(text))


def path_of(uri: str) -> Path:
    """Return the path of a URI; an unsaved text has its URI as its path."""
    return Path(to_fs_path(uri) or uri)


def uri_of(path: Path) -> str:
    return (from_fs_path(str(path)) if path.is_absolute() else None) or str(path)
