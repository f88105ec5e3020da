"""Take back what the parser offers without knowing types, where it would be a wrong type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tollkeeper.grammar.check_errors import MISFITS
from tollkeeper.grammar.checker.files import check
from tollkeeper.grammar.checker.scope import KnownNames
from tollkeeper.grammar.diagnostics import Diagnostic, Edit, Fix
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.vocabulary import Vocabulary

_LONGEST = 300
"""The longest offered text that is checked, in characters."""


def without_misfits(
    found: Iterable[Diagnostic], vocabulary: Vocabulary, known: KnownNames
) -> tuple[Diagnostic, ...]:
    """The parser's diagnostics of a file whose bare names are the payment's fields."""
    return tuple(_fitting(each, vocabulary, known) for each in found)


def _fitting(found: Diagnostic, vocabulary: Vocabulary, known: KnownNames) -> Diagnostic:
    match found:
        case Diagnostic(code="foreign-word", fixes=(Fix(edits=(Edit(replacement=offered),)),)):
            misfit = _misfit(offered, vocabulary, known) if len(offered) <= _LONGEST else None
            return found if misfit is None else replace(found, help=misfit.message, fixes=())
        case _:
            return found


def _misfit(offered: str, vocabulary: Vocabulary, known: KnownNames) -> Diagnostic | None:
    text = f"rule offered\n  let offered = {offered}\n"
    parsed = parse(text)
    if parsed.file is None or parsed.diagnostics:
        return None
    checked = check(parsed.file, text, vocabulary, known)
    return next((each for each in checked.diagnostics if each.code in MISFITS), None)
