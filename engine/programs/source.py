"""A file's text, checked against what it can refer to."""

from __future__ import annotations

from dataclasses import dataclass

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.grammar.checker import Known, check
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import parse_bytes
from tollkeeper.grammar.program import Program
from tollkeeper.grammar.syntax import Use


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file says: its program, None when there is an error, and all that was found.

    `uses` are the names of the definitions that it takes in.
    """

    text: str
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    uses: tuple[str, ...] = ()


def read_file(content: bytes, known: Known) -> Reading:
    """Parse and check; never raises, whatever the bytes."""
    parsed = parse_bytes(content)
    text = content.decode("utf-8", "replace")
    if parsed.file is None:
        return Reading(text, None, parsed.diagnostics)
    checked = check(parsed.file, text, full_vocabulary(), known, parsed.lost)
    found = (*parsed.diagnostics, *checked.diagnostics)
    broken = any(each.severity == "error" for each in found)
    return Reading(
        text=text,
        program=None if broken else checked.program,
        diagnostics=tuple(sorted(found, key=lambda each: each.span)),
        uses=tuple(item.name.text for item in parsed.file.items if isinstance(item, Use)),
    )
