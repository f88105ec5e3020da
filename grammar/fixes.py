"""Fixes of diagnostics: how messages make them, and how they are applied to a text."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tollkeeper.grammar.diagnostics import Diagnostic, Edit, Fix
from tollkeeper.grammar.syntax import Span

MAX_ROUNDS: Final = 50
"""The most rounds of fixing and checking again: a fix may reveal the next error."""
_MAX_READ: Final = 4 * 1024 * 1024
"""The most characters that are read while a text is fixed, over all rounds."""
_ESCAPES: Final = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t"}


def replacing(span: Span, text: str, *, safe: bool = False) -> Fix:
    """Return the fix that replaces a span by `text`."""
    return Fix(f"write `{text}`", (Edit(span, text),), safe)


def inserting(place: int, text: str, *, safe: bool = False) -> Fix:
    """Return the fix that inserts `text`."""
    return Fix(f"add `{text.strip()}`", (Edit(Span(place, place), text),), safe)


def removing(span: Span, *, safe: bool = False) -> Fix:
    """Return the fix that removes a span."""
    return Fix("take it out", (Edit(span, ""),), safe)


def quoted(text: str) -> str:
    """Return a text as a file writes it: in quotes, with escapes where they are needed."""
    return f'"{"".join(map(_written, text))}"'


def _written(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\u{{{ord(character):X}}}"


def apply_fixes(text: str, fixes: Iterable[Fix]) -> str:
    """Apply fixes to a text, skipping those that touch an earlier one."""
    edits: list[Edit] = []
    for fix in fixes:
        if not any(_touches(edits, new.span) for new in fix.edits):
            for new in fix.edits:
                insort(edits, new, key=_span)
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += text[at : edit.span.start], edit.replacement
        at = edit.span.end
    return "".join((*pieces, text[at:]))


def applied_safely(text: str, find: Callable[[str], Sequence[Diagnostic]]) -> str:
    """Apply the safe fixes of all that `find` finds in a text, until none is left or so much text was
    read that going on would keep an author waiting.
    """
    found = find(text)
    for _ in range(min(MAX_ROUNDS, _MAX_READ // (len(text) + 1))):
        fixes = [fix for each in found for fix in each.fixes[:1] if fix.safe]
        changed = apply_fixes(text, fixes)
        after = find(changed) if fixes else found
        if changed == text or (_has_error(after) and not _has_error(found)):
            break
        text, found = changed, after
    return text


def _has_error(found: Iterable[Diagnostic]) -> bool:
    return any(each.severity == "error" for each in found)


def _span(edit: Edit) -> Span:
    return edit.span


def _touches(edits: Sequence[Edit], span: Span) -> bool:
    """Whether a span touches one of the edits, which are in order and apart from each other."""
    place = bisect_left(edits, span, key=_span)
    beside = edits[max(0, place - 1) : place + 1]
    return any(each.span.start <= span.end and span.start <= each.span.end for each in beside)
