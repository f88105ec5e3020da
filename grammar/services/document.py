"""A rule text as an editor sees it: what could be parsed, and the files around it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.builder import Piece
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.checker.offered import without_misfits
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import ParsedFile, parse
from tollkeeper.grammar.program import Program
from tollkeeper.grammar.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A file that others can refer to, and its text."""

    file: s.File
    text: str

    @property
    def name(self) -> str:
        return self.file.name.text

    @property
    def key(self) -> tuple[str, str]:
        return self.file.kind, self.name


@dataclass(frozen=True, slots=True)
class Document:
    """A text with all that the services need.

    `parsed` is what could be parsed, even of a broken text; `program` is None if there is an error.
    `around` holds the neighbouring files by kind and name (`("definitions", "cards")`), if their
    first lines can be read.
    """

    text: str
    parsed: ParsedFile
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    vocabulary: Vocabulary
    around: Mapping[tuple[str, str], Neighbour]

    def piece_at(self, offset: int) -> int | None:
        """Return the index of the token that contains or touches the offset; the later one of two."""
        pieces = self.parsed.pieces
        index = bisect_right(pieces, offset, key=lambda piece: piece.span.start) - 1
        return index if index >= 0 and offset <= pieces[index].span.end else None

    def path_at(self, index: int) -> tuple[tuple[str, ...], s.Span] | None:
        """Return the dotted name up to the token of this index, and its span."""
        return path_up_to(self.parsed.pieces, index)


def path_up_to(
    pieces: tuple[Piece, ...] | list[Piece], index: int
) -> tuple[tuple[str, ...], s.Span] | None:
    """Return the dotted name that ends with the token of this index; None if none ends there."""
    end = pieces[index].span.end
    parts: list[str] = []
    while index >= 0 and pieces[index].kind in ("NAME", "MEMBER"):
        parts.insert(0, pieces[index].text)
        if pieces[index].kind == "NAME":
            return tuple(parts), s.Span(pieces[index].span.start, end)
        index -= 2
    return None


def read_document(
    text: str, vocabulary: Vocabulary, known: KnownNames, around: Iterable[Neighbour] = ()
) -> Document:
    """Parse and check any text; never raises."""
    parsed = parse(text)
    found = parsed.diagnostics
    program: Program | None = None
    if parsed.file is not None:
        checked = check(parsed.file, text, vocabulary, known, parsed.lost)
        if parsed.file.kind != "event":
            found = without_misfits(parsed, text, vocabulary, known)
        found = tuple(sorted((*found, *checked.diagnostics), key=lambda each: each.span))
        if not any(each.severity == "error" for each in found):
            program = checked.program
    return Document(text, parsed, program, found, vocabulary, {each.key: each for each in around})
