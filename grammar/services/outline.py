"""A file's outline, its foldable ranges, and its tokens by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.parser import keywords
from tollkeeper.grammar.services.document import Document
from tollkeeper.grammar.services.mentions import mentions
from tollkeeper.grammar.services.signature import named
from tollkeeper.grammar.syntax import Span

TokenKind: TypeAlias = Literal[
    "keyword",
    "string",
    "number",
    "regexp",
    "operator",
    "comment",
    "function",
    "variable",
    "property",
    "type",
]
TOKEN_KINDS: Final[tuple[TokenKind, ...]] = get_args(TokenKind)
_KINDS: Final[dict[str, TokenKind]] = {
    "STRING": "string",
    "NUMBER": "number",
    "DURATION": "number",
    "REGEX": "regexp",
    "COMPARISON": "operator",
    "PLUS": "operator",
    "MINUS": "operator",
    "STAR": "operator",
    "SLASH": "operator",
    "LIST_NAME": "type",
    "NAME": "property",
    "MEMBER": "property",
}


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """An item of a file: its keyword, name and title; the spans of the item and of its name."""

    keyword: str
    name: str
    title: str
    span: Span
    name_span: Span


@dataclass(frozen=True, slots=True)
class ColouredToken:
    """A token or a comment, and its kind for syntax colouring."""

    span: Span
    kind: TokenKind


def outline(document: Document) -> tuple[OutlineItem, ...]:
    """Return the named items, in order."""
    file = document.parsed.file
    return () if file is None else tuple(_outline_items(document, file))


def _outline_items(document: Document, file: s.File) -> Iterator[OutlineItem]:
    for item in file.items:
        keyword = document.text[item.span.start : item.span.end].split(None, 1)[0]
        title = getattr(item, "title", None)
        words = title.value if isinstance(title, s.Text) else ""
        name = getattr(item, "name", None)
        if isinstance(name, s.Identifier):
            yield OutlineItem(keyword, name.text, words, item.span, name.span)
        elif isinstance(title, s.Text):
            yield OutlineItem(keyword, words, "", item.span, title.span)


def folds(document: Document) -> tuple[Span, ...]:
    """Return the spans of items that take more than one line."""
    file = document.parsed.file
    if file is None:
        return ()
    text = document.text
    return tuple(each.span for each in file.items if "\n" in text[each.span.start : each.span.end])


def tokens(document: Document) -> tuple[ColouredToken, ...]:
    """Return all tokens and comments that were read, by place."""
    file, pieces = document.parsed.file, document.parsed.pieces
    around = document.around
    lets: set[Span] = set()
    comments: list[ColouredToken] = []
    if file is not None:
        found = mentions(file, around, document.vocabulary)
        lets = {each.span for each in found if each.symbol.kind != "field"}
        comments = [ColouredToken(each.span, "comment") for each in file.comments]
    words = frozenset(keywords().values())
    coloured = []
    for index, piece in enumerate(pieces):
        kind = _KINDS.get(piece.kind)
        if piece.kind in words:
            kind = "keyword"
        elif piece.span in lets:
            kind = "variable"
        elif piece.kind == "NAME" and index + 1 < len(pieces) and pieces[index + 1].kind == "LPAR":
            kind = "function" if named(piece.text) else kind
        if kind is not None and piece.span.start < piece.span.end:
            coloured.append(ColouredToken(piece.span, kind))
    return tuple(sorted([*coloured, *comments], key=lambda each: each.span))
