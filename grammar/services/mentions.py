"""Find where names are declared and used: definition, references and rename, across files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal, TypeAlias

from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.diagnostics import Edit
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS
from tollkeeper.grammar.parser import MAX_NAME, reserved_words
from tollkeeper.grammar.services.document import Document, Neighbour
from tollkeeper.grammar.vocabulary import Vocabulary

SymbolKind: TypeAlias = Literal[
    "rule",
    "scorecard",
    "event",
    "definitions",
    "let",
    "list",
    "condition",
    "signal",
    "field",
    "metric",
    "monitor",
]
Neighbours: TypeAlias = Mapping[tuple[str, str], Neighbour]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECLARES: Mapping[type[Any], SymbolKind] = {
    s.Let: "let",
    s.ListDeclaration: "list",
    s.TableDeclaration: "list",
    s.Condition: "condition",
    s.Signal: "signal",
    s.Field: "field",
    s.Metric: "metric",
    s.Monitor: "monitor",
}


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name refers to, across files.

    `owner` is the kind and name of the file that declares it; None for the account's lists and
    tables and for a file's own name. A table is a list with columns.
    """

    kind: SymbolKind
    name: str
    owner: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a symbol is named; `span` covers the bare name, without a list's `@`."""

    symbol: Symbol
    span: s.Span
    declares: bool = False


class BadNameError(ValueError):
    """A symbol can't have this name; the text says why."""


def mentions(file: s.File, around: Neighbours, vocabulary: Vocabulary) -> tuple[Mention, ...]:
    """Return all declarations and uses of names in a file, by place."""
    own = (file.kind, file.name.text)
    found = [Mention(Symbol(file.kind, file.name.text), file.name.span, declares=True)]
    meanings = _meanings(file, around)
    for item in file.items:
        found += _declarations(item, own)
        elements = _elements(item, vocabulary)
        used = _used_names(item, file, own, meanings, around)
        found += [each for each in used if each.span not in elements]
    return tuple(sorted(found, key=lambda each: each.span))


def _elements(item: s.Item, vocabulary: Vocabulary) -> set[s.Span]:
    """Return the spans of names that refer to a transaction's field, even if something else has
    that name.
    """
    return {
        node.span
        for call in nodes(item)
        if isinstance(call, s.Call) and call.where is not None
        if any(_root(each) == "transactions" for each in call.arguments)
        for node in nodes(call.where)
        if isinstance(node, s.Name) and node.text in vocabulary.transaction
    }


def _root(node: s.Expression) -> str | None:
    while isinstance(node, s.Attribute):
        node = node.base
    return node.text if isinstance(node, s.Name) else None


def mention_at(document: Document, offset: int) -> Mention | None:
    """Return the name that contains or touches the offset."""
    if document.parsed.file is None:
        return None
    for each in mentions(document.parsed.file, document.around, document.vocabulary):
        if each.span.start <= offset <= each.span.end:
            return each
    return None


def places(symbol: Symbol, document: Document) -> tuple[Mention, ...]:
    """Return the places in a document that name the symbol."""
    if document.parsed.file is None:
        return ()
    found = mentions(document.parsed.file, document.around, document.vocabulary)
    return tuple(each for each in found if each.symbol == symbol)


def refuse_name(symbol: Symbol, name: str, documents: Iterable[Document]) -> None:
    """Raise `BadNameError` if the symbol can't have this name in these documents."""
    if not _PLAIN_NAME.fullmatch(name):
        raise BadNameError("a name has letters, digits and `_`, and begins with no digit")
    if len(name) > MAX_NAME:
        raise BadNameError(f"a name has at most {MAX_NAME} characters")
    if name.lower() in reserved_words():
        raise BadNameError(f"`{name}` is a word of the language")
    for document in documents:
        roots = {path.split(".")[0] for path in document.vocabulary.payment}
        if symbol.kind == "let" and (name in roots or name in FUNCTIONS or name in AGGREGATES):
            raise BadNameError(f"`{name}` has a meaning already")
        if document.parsed.file is None or document.parsed.diagnostics:
            raise BadNameError("a file that names it has a syntax error: mend that first")
        found = mentions(document.parsed.file, document.around, document.vocabulary)
        if any(each.symbol.name == name and each.symbol != symbol for each in found):
            raise BadNameError(f"`{name}` is taken")


def rename_edits(symbol: Symbol, name: str, document: Document) -> tuple[Edit, ...]:
    """Return the edits that rename the symbol in a document, in order."""
    return tuple(Edit(each.span, name) for each in places(symbol, document))


def _declarations(item: s.Item, own: tuple[str, str]) -> Iterator[Mention]:
    kind = _DECLARES.get(type(item))
    if kind is not None:
        name: s.Identifier = item.name  # type: ignore[union-attr]
        symbol = Symbol(kind, name.text, None if kind == "list" else own)
        yield Mention(symbol, name.span, declares=True)


def _meanings(file: s.File, around: Neighbours) -> dict[str, Symbol]:
    """Return what bare names refer to in the file's expressions, except fields of payments."""
    found: dict[str, Symbol] = {}
    for item in file.items:
        if isinstance(item, s.Use):
            key = ("definitions", item.name.text)
            if key in around:
                found |= {name: Symbol("let", name, key) for name in _lets(around[key].file)}
    own = (file.kind, file.name.text)
    for item in file.items:
        if isinstance(item, (s.Field, s.Metric)):
            found[item.name.text] = Symbol(_DECLARES[type(item)], item.name.text, own)
    return found | {name: Symbol("let", name, own) for name in _lets(file)}


def _lets(file: s.File) -> Iterator[str]:
    return (item.name.text for item in file.items if isinstance(item, s.Let))


def _used_names(
    item: s.Item,
    file: s.File,
    own: tuple[str, str],
    meanings: Mapping[str, Symbol],
    around: Neighbours,
) -> Iterator[Mention]:
    statement: SymbolKind = "signal" if file.kind == "scorecard" else "condition"
    for node in nodes(item):
        match node:
            case s.Use(name=name):
                yield Mention(Symbol("definitions", name.text), name.span)
            case s.ExpectAction(by=s.Identifier(text=text, span=span)):
                yield Mention(Symbol(statement, text, own), span)
            case s.ExpectAlert(monitor=s.Identifier(text=text, span=span)):
                yield Mention(Symbol("monitor", text, own), span)
            case s.ListName(name=text, span=span):
                yield Mention(Symbol("list", text), s.Span(span.start + 1, span.end))
            case s.Attribute(base=s.Name(text=base, span=span), name=name):
                event = own if file.kind == "event" else ("event", base)
                if base == "events":
                    yield Mention(Symbol("field", name.text, event), name.span)
                elif base not in meanings and (event == ("event", base) or event in around):
                    if event not in around and event != own:
                        continue
                    yield Mention(Symbol("event", base), span)
                    yield Mention(Symbol("metric", name.text, ("event", base)), name.span)
            case s.Name(text=text, span=span) if text in meanings:
                yield Mention(meanings[text], span)
            case _:
                pass


@cache
def _child_fields(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.name not in ("id", "span"))


def nodes(top: s.Node) -> Iterator[s.Node]:
    """Yield a node and everything in it, without recursion."""
    waiting: list[Any] = [top]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(node)
        elif isinstance(node, s.Node):
            yield node
            waiting.extend(getattr(node, name) for name in _child_fields(type(node)))  # type: ignore[arg-type]  # a class hashes, if its instances or not
