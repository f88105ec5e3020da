"""Parse and check a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.programs.shipped_definitions import shipped_definitions
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.checker.offered import without_misfits
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.parser import MAX_ERRORS, MAX_FILE_BYTES, parse_bytes
from tollkeeper.grammar.program import Program
from tollkeeper.grammar.syntax import Use


@dataclass(frozen=True, slots=True)
class FileReading:
    """What reading a file gave: its program, None when there is an error, and the diagnostics.

    `uses` are the names of the definitions that it imports, `shipped` the texts of those that come
    with the service.
    """

    text: str
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    uses: tuple[str, ...] = ()
    shipped: Mapping[str, str] = field(default_factory=dict)


def read_file(
    content: bytes, known: KnownNames, most_syntax_errors: int = MAX_ERRORS
) -> FileReading:
    """Parse and check; never raises, whatever the bytes."""
    parsed = parse_bytes(content, most_syntax_errors)
    text = content.decode("utf-8", "replace")
    if parsed.file is None:
        return FileReading(text, None, parsed.diagnostics)
    uses = tuple(item.name.text for item in parsed.file.items if isinstance(item, Use))
    known, shipped = with_shipped(known, uses)
    checked = check(parsed.file, text, full_vocabulary(), known, parsed.lost)
    of_parser = parsed.diagnostics
    if parsed.file.kind != "event":
        of_parser = without_misfits(parsed, text, full_vocabulary(), known)
    found = (*of_parser, *checked.diagnostics)
    broken = any(each.severity == "error" for each in found)
    return FileReading(
        text=text,
        program=None if broken else checked.program,
        diagnostics=tuple(sorted(found, key=lambda each: each.span)),
        uses=uses,
        shipped=shipped,
    )


def find_all(text: str, known: KnownNames) -> tuple[Diagnostic, ...]:
    """Return all findings of a text, however many syntax errors it has."""
    return read_file(text.encode("utf-8", "replace"), known, MAX_FILE_BYTES).diagnostics


def with_shipped(known: KnownNames, uses: Sequence[str]) -> tuple[KnownNames, dict[str, str]]:
    """Add the shipped definitions to the names that a file can refer to; also gives the texts of those
    that it uses.

    The account's own definitions take precedence over shipped ones of the same name.
    """
    there, shipped = known.definitions, shipped_definitions()
    own = {
        name for name in shipped if there.get(name, shipped[name].program) != shipped[name].program
    }
    definitions = {name: each.program for name, each in shipped.items()} | dict(there)
    texts = {name: shipped[name].text for name in uses if name in shipped and name not in there}
    return replace(known, definitions=definitions, own_for_shipped=frozenset(own)), texts
