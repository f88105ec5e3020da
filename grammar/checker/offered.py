"""Take back what the parser offers without knowing types, where it would be a wrong type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.check_errors import MISFITS
from tollkeeper.grammar.checker.files import check
from tollkeeper.grammar.checker.scope import KnownNames
from tollkeeper.grammar.diagnostics import Diagnostic, Edit, Fix
from tollkeeper.grammar.parser import ParsedFile, parse
from tollkeeper.grammar.vocabulary import Vocabulary

_LONGEST = 300
"""The longest offered text that is checked, in characters."""


def without_misfits(
    parsed: ParsedFile, text: str, vocabulary: Vocabulary, known: KnownNames
) -> tuple[Diagnostic, ...]:
    """Return the parser's diagnostics of a file whose bare names are its lets and the payment's
    fields.
    """
    offered = {
        index: found
        for index, each in enumerate(parsed.diagnostics)
        if (found := _offered(each)) is not None and len(found) <= _LONGEST
    }
    misfits = _misfits(offered, parsed, text, vocabulary, known) if offered else {}
    return tuple(
        replace(each, help=misfits[index].message, fixes=()) if index in misfits else each
        for index, each in enumerate(parsed.diagnostics)
    )


def _offered(found: Diagnostic) -> str | None:
    match found:
        case Diagnostic(code="foreign-word", fixes=(Fix(edits=(Edit(replacement=offered),)),)):
            return offered
        case _:
            return None


def _misfits(
    offered: Mapping[int, str],
    parsed: ParsedFile,
    text: str,
    vocabulary: Vocabulary,
    known: KnownNames,
) -> dict[int, Diagnostic]:
    """Check all that is offered as lets below what the file declares."""
    assert parsed.file is not None
    declared = [
        text[item.span.start : item.span.end]
        for item in parsed.file.items
        if isinstance(item, s.Use | s.ListDeclaration | s.TableDeclaration | s.Let)
    ]
    lets = [f"let {_name(index)} = {each}" for index, each in offered.items()]
    tried = "\n".join(["rule offered", *declared, *lets])
    file = parse(tried).file
    if file is None:
        return {}
    checked = check(file, tried, vocabulary, known, parsed.lost)
    of = {_name(index): index for index in offered}
    places = {
        of[item.name.text]: item.span
        for item in file.items
        if isinstance(item, s.Let) and item.name.text in of
    }
    return {
        index: misfit
        for index, place in places.items()
        for misfit in checked.diagnostics
        if misfit.code in MISFITS and place.start <= misfit.span.start < place.end
    }


def _name(index: int) -> str:
    return f"offered_{index}"
