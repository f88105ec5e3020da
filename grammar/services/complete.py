"""Completion: what an author may write at a place, from the parser's automaton and the visible
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import Final, Literal, TypeAlias

from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.builder import Piece
from tollkeeper.grammar.checker.declarations import VALUE_TYPES
from tollkeeper.grammar.functions import AGGREGATES, COLLECTIONS, FUNCTIONS
from tollkeeper.grammar.parser import expected_tokens, keywords, parse
from tollkeeper.grammar.services.document import Document, path_up_to
from tollkeeper.grammar.services.signature import signature
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.vocabulary import Field
from tollkeeper.grammar.words import type_in_words

CompletionKind: TypeAlias = Literal[
    "keyword", "field", "function", "let", "list", "column", "value", "event", "metric", "name"
]

HEADERS: Final = (
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Origin",
    "Referer",
    "Sec-CH-UA",
    "Sec-CH-UA-Mobile",
    "Sec-CH-UA-Platform",
    "User-Agent",
)
"""The request headers that rules use most."""

_OPEN_TEXT = re.compile(r'^[^"#\n]*(?:"(?:[^"\\\n]|\\.)*"[^"#\n]*)*"((?:[^"\\\n]|\\.)*)$')
_COMMENT = re.compile(r'[^"#]*(?:"(?:[^"\\]|\\.)*"[^"#]*)*#')
"""A line that begins a comment, in time linear in it: a `#` outside of texts."""
_WORD_CHARACTERS: Final = f"{ascii_letters}{digits}_"


@dataclass(frozen=True, slots=True)
class Completion:
    """A text to insert at `span`, with its type in words and its meaning."""

    text: str
    kind: CompletionKind
    span: Span
    type: str = ""
    doc: str = ""


def complete(document: Document, offset: int) -> tuple[Completion, ...]:
    """Return everything that is possible at the offset; empty in a comment and after an error in
    the item.
    """
    text = document.text[:offset]
    line = text[text.rfind("\n") + 1 :]
    if opened := _OPEN_TEXT.match(line):
        start = offset - len(opened[1])
        return tuple(_texts(document, text[: start - 1], Span(start, offset)))
    if _COMMENT.match(line):
        return ()
    start = len(text.rstrip(_WORD_CHARACTERS))
    span = Span(start - text.endswith("@", 0, start), offset)
    before = text[: span.start]
    kinds = expected_tokens(before)
    found = [
        Completion(name, "keyword", span) for name, kind in keywords().items() if kind in kinds
    ]
    if "MEMBER" in kinds:
        found += _members(document, before, span)
    if "NAME" in kinds:
        found += _names(document, before, kinds, span)
    if "LIST_NAME" in kinds:
        found += _lists(document, span)
    return tuple(found)


def _names(
    document: Document, before: str, kinds: frozenset[str], span: Span
) -> Iterator[Completion]:
    """Complete a bare name: a value where a number is possible too, else a name that fits its
    place.
    """
    if "NUMBER" in kinds:
        yield from _values(document, span)
        return
    pieces = parse(before).pieces
    last = pieces[-1].kind if pieces else ""
    if last == "USE":
        names = [name for kind, name in document.around if kind == "definitions"]
        yield from (Completion(name, "name", span, "definitions") for name in names)
    elif last == "COLON":
        yield from (Completion(name, "name", span, "type") for name in VALUE_TYPES)
    elif last == "OF":
        yield from (Completion(name, "name", span, "records") for name in COLLECTIONS)
    elif last == "BY" and any(each.kind == "EXPECT" for each in pieces[-3:]):
        yield from _complete_declared(document, (s.Condition, s.Signal), span)
    elif last == "BY":
        yield from (Completion(name, "name", span) for name in ("value", "prefix", "network"))
    elif last == "ALERT":
        yield from _complete_declared(document, (s.Monitor,), span)


def _complete_declared(
    document: Document, kinds: tuple[type[s.Condition | s.Signal | s.Monitor], ...], span: Span
) -> Iterator[Completion]:
    for item in _items(document):
        if isinstance(item, kinds):
            title = item.title.value if item.title is not None else ""
            yield Completion(item.name.text, "name", span, type(item).__name__.lower(), title)


def _items(document: Document) -> Iterable[s.Item]:
    return document.parsed.file.items if document.parsed.file is not None else ()


def _values(document: Document, span: Span) -> Iterator[Completion]:
    for file, item in _reachable(document):
        if isinstance(item, s.Let):
            yield Completion(item.name.text, "let", span, "let", _let_text(document, file, item))
        elif isinstance(item, s.Field):
            yield Completion(item.name.text, "field", span, "field of the event")
    own = document.parsed.file
    if own is None or own.kind != "event":
        yield from _fields(document.vocabulary.payment.values(), 0, span)
        yield Completion("score", "field", span, "number", "The score of the payment.")
    for function in FUNCTIONS.values():
        yield Completion(function.name, "function", span, signature(function), function.doc)
    for aggregate in AGGREGATES.values():
        yield Completion(aggregate.name, "function", span, signature(aggregate), aggregate.doc)
    for name in COLLECTIONS:
        yield Completion(name, "name", span, "records")
    for kind, name in document.around:
        if kind == "event":
            yield Completion(name, "event", span, "event type")


def _let_text(document: Document, file: s.File, let: s.Let) -> str:
    own = document.parsed.file
    if file is not own:
        return f"of definitions {file.name.text}"
    return document.text[let.value.span.start : let.value.span.end]


def _reachable(document: Document) -> Iterator[tuple[s.File, s.Item]]:
    """Yield the items of the file and of the definitions that it uses, each with its file."""
    own = document.parsed.file
    if own is None:
        return
    for item in own.items:
        yield own, item
        if isinstance(item, s.Use):
            used = document.around.get(("definitions", item.name.text))
            if used is not None:
                yield from ((used.file, each) for each in used.file.items)


def _lists(document: Document, span: Span) -> Iterator[Completion]:
    for _, item in _reachable(document):
        if isinstance(item, s.ListDeclaration):
            yield Completion(f"@{item.name.text}", "list", span, "list")
        elif isinstance(item, s.TableDeclaration):
            columns = ", ".join(column.name.text for column in item.columns)
            yield Completion(f"@{item.name.text}", "list", span, "table", f"Columns: {columns}.")


def _members(document: Document, before: str, span: Span) -> Iterator[Completion]:
    """Complete after a dot."""
    pieces = parse(before).pieces
    if len(pieces) < 2:
        return
    if pieces[-2].kind == "RSQB":
        yield from _columns(document, pieces, span)
        return
    read = path_up_to(pieces, len(pieces) - 2)
    if read is None:
        return
    path = read[0]
    event = document.around.get(("event", path[0]))
    if event is not None and len(path) == 1:
        for item in event.file.items:
            if isinstance(item, s.Metric):
                title = item.title.value if item.title is not None else ""
                yield Completion(item.name.text, "metric", span, "metric", title)
    if path[0] == "events" and len(path) == 1:
        for item in _items(document):
            if isinstance(item, s.Field):
                yield Completion(item.name.text, "field", span, "field of the event")
        return
    yield from _fields(_fields_below(document, path), len(_bare(path)), span)


def _bare(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path without the leading word for whose fields they are."""
    return path[1:] if path[0] in ("payment", "payments", "transactions") else path


def _fields_below(document: Document, path: tuple[str, ...]) -> list[Field]:
    of, bare = document.vocabulary, _bare(path)
    fields = of.transaction if path[0] == "transactions" else {**of.payment, **of.decision}
    return [each for each in fields.values() if each.path[: len(bare)] == bare]


def _fields(fields: Iterable[Field], depth: int, span: Span) -> Iterator[Completion]:
    for field in fields:
        if len(field.path) == depth + 1:
            yield Completion(field.path[-1], "field", span, type_in_words(field.type), field.doc)


def _columns(document: Document, pieces: Sequence[Piece], span: Span) -> Iterator[Completion]:
    names = [each.text for each in pieces if each.kind == "LIST_NAME"]
    for _, item in _reachable(document):
        if isinstance(item, s.TableDeclaration) and names and names[-1] == f"@{item.name.text}":
            for column in item.columns:
                yield Completion(column.name.text, "column", span, "column")


def _texts(document: Document, before: str, span: Span) -> Iterator[Completion]:
    """Complete inside quotes: the choices of an enum, the names of headers."""
    pieces = parse(before).pieces
    index = len(pieces) - 1
    if index >= 1 and pieces[index].kind == "LSQB":
        read = path_up_to(pieces, index - 1)
        if read is not None and read[0][-1] == "headers":
            yield from (Completion(name, "value", span, "header") for name in HEADERS)
            return
    while index >= 0 and pieces[index].kind in ("STRING", "COMMA", "LSQB"):
        index -= 1
    if index < 1 or pieces[index].kind not in ("COMPARISON", "IN", "EQUAL"):
        return
    index -= 2 if pieces[index - 1].kind == "NOT" else 1
    read = path_up_to(pieces, index) if index >= 0 else None
    field = _field(document, read[0]) if read is not None else None
    if field is not None and isinstance(field.type, t.String):
        yield from (Completion(each, "value", span) for each in field.type.choices or ())


def _field(document: Document, path: tuple[str, ...]) -> Field | None:
    of = document.vocabulary
    name = ".".join(_bare(path))
    if path[0] == "transactions":
        return of.transaction.get(name)
    return of.payment.get(name) or of.decision.get(name)
