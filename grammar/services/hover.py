"""What a name means, in Markdown, for an author who points at it."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.services.document import Document
from tollkeeper.grammar.services.mentions import Symbol, mention_at
from tollkeeper.grammar.services.signature import named, signature
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.vocabulary import is_always_there
from tollkeeper.grammar.words import type_in_words


@dataclass(frozen=True, slots=True)
class HoverExplanation:
    """Markdown about what stands at `span`."""

    span: Span
    markdown: str


def hover(document: Document, offset: int) -> HoverExplanation | None:
    """What stands at the offset: a name of the files, a field, a function; None for the rest."""
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
    """A block of the language's code in Markdown, whatever the text holds."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}toll\n{text}\n{fence}"


def let_types(document: Document) -> tuple[tuple[s.Let, str], ...]:
    """The lets of a document without errors, each with its type in words."""
    file = document.parsed.file
    if file is None or document.program is None:
        return ()
    types = {
        let.name: type_in_words(let.value.type)
        for let in document.program.lets
        if let.source is None and not isinstance(let.value, p.MetadataFact)
    }
    return tuple(
        (item, types[item.name.text])
        for item in file.items
        if isinstance(item, s.Let) and item.name.text in types
    )


def _symbol(document: Document, symbol: Symbol) -> str:
    file = document.parsed.file
    own = file is not None and symbol.owner in (None, (file.kind, file.name.text))
    if own and file is not None:
        for item in file.items:
            name = getattr(item, "name", None)
            if isinstance(name, s.Identifier) and name.text == symbol.name:
                written = code(document.text[item.span.start : item.span.end])
                types = {let.name.text: kind for let, kind in let_types(document)}
                is_typed = symbol.kind == "let" and symbol.name in types
                return f"{written}\n{types[symbol.name]}" if is_typed else written
    whose = f" of {symbol.owner[0]} `{symbol.owner[1]}`" if symbol.owner else ""
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
    return HoverExplanation(span, text)
