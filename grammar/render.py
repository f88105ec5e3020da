"""Render diagnostics for people (plain or coloured), as JSON, and as SARIF for code hosts.

docs/language.md, "Diagnostics", defines the form for people: place, severity and code, message; the
source line; the span underlined, with the help after it.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from rich.cells import get_character_cell_size
from rich.text import Text

from tollkeeper.grammar.diagnostics import Diagnostic, Fix
from tollkeeper.grammar.syntax import Span

MAX_SHOWN: Final = 20
MAX_CELLS: Final = 100
_CELLS_BEFORE_SPAN: Final = 40
_TAB: Final = "    "
_UNSHOWABLE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

Style: TypeAlias = Literal["place", "error", "warning", "plain", "gutter", "help"]
_COLOURS: Final[dict[Style, str]] = {
    "place": "bold",
    "error": "bold red",
    "warning": "bold yellow",
    "plain": "",
    "gutter": "dim",
    "help": "cyan",
}


class Position(NamedTuple):
    """A position in a file; lines and characters count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name and text, and the offsets of its lines."""

    name: str
    text: str
    line_starts: tuple[int, ...]

    @classmethod
    def of(cls, name: str, text: str) -> Source:
        *lines, _ = text.split("\n")
        starts = accumulate((len(line) + 1 for line in lines), initial=0)
        return cls(name, text, tuple(starts))

    def position(self, offset: int) -> Position:
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


def as_text(source: Source, diagnostics: Sequence[Diagnostic], width: int = MAX_CELLS) -> str:
    """Return a page of diagnostics as plain text, then how many more there are.

    Of a line longer than `width` cells, only the part around the place is shown.
    """
    return "".join(text for _, text in _page(source, diagnostics, width))


def as_rich(source: Source, diagnostics: Sequence[Diagnostic], width: int = MAX_CELLS) -> Text:
    """Return the same page in colours; its plain text equals `as_text`."""
    page = _page(source, diagnostics, width)
    return Text.assemble(*((text, _COLOURS[style]) for style, text in page))


def as_json(source: Source, diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Return each diagnostic as an object; lines and characters count from 1, the end is exclusive."""
    objects = []
    for diagnostic in diagnostics:
        start, end = (source.position(offset) for offset in diagnostic.span)
        objects.append(
            {
                "file": source.name,
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
                "severity": diagnostic.severity,
                "code": diagnostic.code,
                "message": diagnostic.message,
                "help": diagnostic.help,
                "fixes": [_json_fix(source, fix) for fix in diagnostic.fixes],
            }
        )
    return objects


def _json_fix(source: Source, fix: Fix) -> dict[str, Any]:
    edits = []
    for edit in fix.edits:
        start, end = (source.position(offset) for offset in edit.span)
        edits.append(
            {
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
                "replacement": edit.replacement,
            }
        )
    return {"title": fix.title, "safe": fix.safe, "edits": edits}


def as_sarif(found: Iterable[tuple[Source, Sequence[Diagnostic]]]) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log of one run over any number of files."""
    results = [
        _sarif_result(source, diagnostic) for source, found_in in found for diagnostic in found_in
    ]
    codes = sorted({result["ruleId"] for result in results})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "tollkeeper", "rules": [{"id": c} for c in codes]}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _sarif_result(source: Source, diagnostic: Diagnostic) -> dict[str, Any]:
    message, help_ = diagnostic.message, diagnostic.help
    artifact = {"uri": quote(source.name)}
    return {
        "ruleId": diagnostic.code,
        "level": diagnostic.severity,
        "message": {"text": f"{message}: {help_}" if help_ else message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": _sarif_region(source, diagnostic.span),
                }
            }
        ],
        "fixes": [
            {
                "description": {"text": fix.title},
                "artifactChanges": [
                    {
                        "artifactLocation": artifact,
                        "replacements": [
                            {
                                "deletedRegion": _sarif_region(source, edit.span),
                                "insertedContent": {"text": edit.replacement},
                            }
                            for edit in fix.edits
                        ],
                    }
                ],
            }
            for fix in diagnostic.fixes
        ],
    }


def _sarif_region(source: Source, span: Span) -> dict[str, int]:
    start, end = (source.position(offset) for offset in span)
    return {
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    }


def _page(
    source: Source, diagnostics: Sequence[Diagnostic], width: int
) -> Iterator[tuple[Style, str]]:
    for diagnostic in diagnostics[:MAX_SHOWN]:
        yield from _show(source, diagnostic, width)
    if len(diagnostics) > MAX_SHOWN:
        yield "plain", f"and {len(diagnostics) - MAX_SHOWN} more\n"


def _show(source: Source, diagnostic: Diagnostic, width: int) -> Iterator[tuple[Style, str]]:
    start = source.position(diagnostic.span.start)
    line = source.line(start.line)
    length = diagnostic.span.end - diagnostic.span.start
    underlined = Span(start.column - 1, start.column - 1 + length)
    excerpt, indent, carets = _excerpt(line, underlined, width)
    number = f"  {start.line} | "
    yield "place", f"{_showable(source.name)}:{start.line}:{start.column}"
    yield diagnostic.severity, f" {diagnostic.severity}[{diagnostic.code}]"
    yield "plain", f": {_showable(diagnostic.message)}\n"
    yield "gutter", number.rstrip() if not excerpt else number
    yield "plain", f"{excerpt}\n"
    yield "gutter", " " * (len(number) - 2) + "| "
    yield diagnostic.severity, " " * indent + "^" * carets
    if diagnostic.help:
        yield "help", f" {_showable(diagnostic.help)}"
    yield "plain", "\n"


def _excerpt(line: str, span: Span, width: int) -> tuple[str, int, int]:
    """Return the shown part of a line, and the number of cells before and under the carets."""
    first, last = min(span.start, len(line)), min(span.end, len(line))
    left, right = _window(line, first, width)
    shown = [_showable(character) for character in line[left:right]]
    before, after = "…" if left else "", "…" if right < len(line) else ""
    indent = len(before) + _cells("".join(shown[: first - left]))
    carets = _cells("".join(shown[first - left : last - left]))
    return f"{before}{''.join(shown)}{after}".rstrip(), indent, max(carets, 1)


def _window(line: str, first: int, width: int) -> tuple[int, int]:
    """Return the shown part of a line: all of it, or the part around character `first`."""
    if len(line) <= width and _cells(_showable(line)) <= width:
        return 0, len(line)
    left, before = first, 0
    while left > 0 and before < _CELLS_BEFORE_SPAN:
        left -= 1
        before += _cells(_showable(line[left]))
    right, cells = first, before
    while right < len(line) and cells < width:
        cells += _cells(_showable(line[right]))
        right += 1
    return left, right


def _cells(text: str) -> int:
    return sum(map(get_character_cell_size, text))


def _showable(text: str) -> str:
    """Replace characters that could move the cursor or reverse the writing direction."""
    return "".join(
        _TAB
        if character == "\t"
        else "\ufffd"
        if unicodedata.category(character) in _UNSHOWABLE
        else character
        for character in text
    )
