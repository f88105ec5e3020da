"""Explain the name that an author points at, in Markdown."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.services.document import Document
from tollkeeper.grammar.services.mentions import Symbol, mention_at
from tollkeeper.grammar.services.signature import named, signature
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.vocabulary import is_always_there
from tollkeeper.grammar.walk import parts
from tollkeeper.grammar.words import type_in_words


@dataclass(frozen=True, slots=True)
class HoverExplanation:
    """Markdown about what stands at `span`."""

    span: Span
    markdown: str


def hover(document: Document, offset: int) -> HoverExplanation | None:
    """Explain what is at the offset: a name of the files, a field, a function; None for anything
    else.
    """
    mention = mention_at(document, offset)
    if mention is not None:
        return HoverExplanation(mention.span, _symbol(document, mention.symbol))
    index = document.piece_at(offset)
    if index is None:
        return None
    pieces = document.parsed.pieces
    calls = named(pieces[index].text) if pieces[index].kind == "NAME" else ()
    if calls and index + 1 < len(pieces) and pieces[index + 1].kind == "LPAR":
        text = "\n\n".join(
            f"{code(signature(each))}\n{each.doc}\n\nFor example `{each.example}`."
            for each in calls
        )
        return HoverExplanation(pieces[index].span, text)
    read = document.path_at(index)
    return None if read is None else _field(document, *read)


def code(text: str) -> str:
    """Return a Markdown block of code, whatever the text contains."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}toll\n{text}\n{fence}"


def let_types(document: Document) -> tuple[tuple[s.Let, str], ...]:
    """Return the lets of a document without errors, each with its type in words."""
    file = document.parsed.file
    if file is None or document.program is None:
        return ()
    types = _types(document)
    return tuple(
        (item, types[item.name.text])
        for item in file.items
        if isinstance(item, s.Let) and item.name.text in types
    )


def _types(document: Document) -> dict[str, str]:
    """Return the type of each let that the program reads, in words."""
    return {
        let.name: type_in_words(let.value.type)
        for let in (() if document.program is None else document.program.lets)
        if let.event is None and not isinstance(let.value, p.MetadataFact)
    }


def _symbol(document: Document, symbol: Symbol) -> str:
    file = document.parsed.file
    own = file is not None and symbol.owner in (None, (file.kind, file.name.text))
    whose = f" of {symbol.owner[0]} `{symbol.owner[1]}`" if symbol.owner and not own else ""
    neighbour = document.around.get(symbol.owner) if symbol.owner and not own else None
    text = document.text if own else "" if neighbour is None else neighbour.text
    items = (
        file.items
        if own and file is not None
        else ()
        if neighbour is None
        else neighbour.file.items
    )
    for item in items:
        name = getattr(item, "name", None)
        if isinstance(name, s.Identifier) and name.text == symbol.name:
            written = code(text[item.span.start : item.span.end])
            types = _types(document) if symbol.kind == "let" else {}
            return f"{written}\n{types.get(symbol.name, '')}{whose}".rstrip()
    return f"{symbol.kind} `{symbol.name}`{whose}"


def _field(document: Document, path: tuple[str, ...], span: Span) -> HoverExplanation | None:
    of = document.vocabulary
    name = ".".join(path)
    bare = ".".join(path[1:])
    if path[0] == "transactions" and bare:
        field = of.transaction.get(bare)
    elif path[0] in ("payment", "payments") and bare:
        field = of.payment.get(bare) or of.decision.get(bare)
    else:
        field = of.payment.get(name) or of.decision.get(name)
    if field is None:
        return None
    fields = of.transaction if path[0] == "transactions" else of.payment
    missing = "never missing" if is_always_there(fields, field.path) else "may be missing"
    text = f"`{name}`: {type_in_words(field.type)}, {missing}\n\n{field.doc}"
    example = example_of(name, field.type)
    return HoverExplanation(
        span, text if example is None else f"{text}\n\nFor example `{example}`."
    )


def example_of(name: str, kind: t.Type) -> str | None:
    """Return a sample test of a value of this type; None if there is none."""
    match kind:
        case t.Boolean():
            return name
        case t.String(choices=tuple(choices)):
            return f'{name} == "{choices[0]}"'
        case t.String():
            return f'{name} starts with "A"'
        case t.Number(low=low, high=high) if low is not None and high is not None:
            return f"{name} > {(low + high) / 2}"
        case t.Number():
            return f"{name} > 10"
        case t.Ip():
            return f'{name} in ["203.0.113.0/24"]'
        case t.Instant():
            return f'hour({name}, "UTC") < 6'
        case t.Record() | t.Collection():
            return f"{name} is missing"
        case t.Headers():
            return f'{name}["User-Agent"] is missing'
        case t.Metadata():
            return f'{name}["campaign"] == "spring"'
        case _:
            return None


def histories_at(document: Document, offset: int) -> tuple[p.History, ...]:
    """Return the aggregates over history at the offset, or in the let that it names."""
    if document.program is None or isinstance(document.program, p.Definitions):
        return ()
    lets = {let.name: let for let in document.program.lets if let.event is None}
    mention = mention_at(document, offset)
    if mention is not None and mention.symbol.kind == "let" and mention.symbol.name in lets:
        inner = parts(lets[mention.symbol.name].value)
        return tuple(each for each in inner if isinstance(each, p.History))
    index = document.piece_at(offset)
    if index is None or not named(document.parsed.pieces[index].text):
        return ()
    start = document.parsed.pieces[index].span.start
    return tuple(
        each
        for each in document.program.histories
        if each.span.start == start
        and not any(let.source is not None and each in parts(let.value) for let in lets.values())
    )
