"""Format a file: only white space changes; every token and comment stays.

Items are indented by two spaces, their clauses by four. A clause that is too long breaks at its
loosest operators, as in docs/language.md, "A rule". Blank lines are kept, at most one at a time;
there is always one around a condition and a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tollkeeper.grammar.blame import ITEMS
from tollkeeper.grammar.layout import LayoutGroup, LayoutPage, LayoutPart, Line, Remark, Word, group
from tollkeeper.grammar.parser import MAX_FILE_BYTES, ParsedFile, parse

WIDTH: Final = 100
_INDENT: Final = 2

_SET_APART: Final = frozenset({"CONDITION", "MUST", "TEST"})
_CLAUSES: Final = {
    "CONDITION": frozenset({"WHEN", "THEN"}),
    "MUST": frozenset({"WHEN", "NEVER", "ALWAYS"}),
    "SIGNAL": frozenset({"ADDS", "CURVES"}),
    "TEST": frozenset({"GIVEN", "EXPECT"}),
}
_SEPARATORS: Final = (
    frozenset({"WHEN", "BY", "OVER", "HALF", "WHERE", "EVERY"}),
    frozenset({"COMMA"}),
    frozenset({"OR"}),
    frozenset({"AND"}),
    frozenset({"PLUS", "MINUS"}),
)
_UNDER_WHEN: Final = {"OR": 2, "AND": 1}
_NO_SHIFTS: Final[Mapping[str, int]] = {}
_TIGHT_OPENING: Final = frozenset({"LPAR", "LSQB"})
_TIGHT_CLOSING: Final = frozenset({"RPAR", "RSQB"})
_OPENING: Final = _TIGHT_OPENING | {"LBRACE"}
_CLOSING: Final = _TIGHT_CLOSING | {"RBRACE"}
_ENDS_VALUE: Final = frozenset(
    {
        "NAME",
        "MEMBER",
        "LIST_NAME",
        "NUMBER",
        "DURATION",
        "STRING",
        "TRUE",
        "FALSE",
        *_TIGHT_CLOSING,
    }
)
_SUBSCRIPTED: Final = frozenset({"NAME", "MEMBER", "LIST_NAME", "RSQB"})
_CLOSE_BEFORE: Final = frozenset({"COMMA", "DOT", "COLON", *_TIGHT_CLOSING})
_NEGATIVE: Final = "NEGATIVE"
_CLOSE_AFTER: Final = frozenset({"DOT", _NEGATIVE, *_TIGHT_OPENING})
_COMMENT: Final = "COMMENT"
_BRACKETS: Final = "BRACKETS"


@dataclass(frozen=True, slots=True)
class _Mark:
    """A token or a comment, with the white space before it."""

    kind: str
    text: str
    begins_line: bool
    after_blank: bool


@dataclass(frozen=True, slots=True)
class _Clause:
    """Tokens that stay together, with the comments among them, and the comments above."""

    item: str
    indent: int
    above: tuple[_Mark, ...]
    marks: list[_Mark]

    @property
    def begins_item(self) -> bool:
        return self.indent <= _INDENT


@dataclass(frozen=True, slots=True)
class _Atom:
    """A token, a comment or a pair of brackets with its contents, laid out."""

    kind: str
    part: LayoutPart


def format_file(text: str) -> str:
    """Format a file; formatting the result again changes nothing.

    Raises ValueError for a text with syntax errors (`parse` returns them), and for a result that is
    larger than a file may be.
    """
    parsed = parse(text)
    if parsed.file is None or parsed.diagnostics:
        raise ValueError("only a text without syntax errors can be formatted")
    clauses, below = _clauses(_marks(text, parsed))
    page = LayoutPage(WIDTH)
    last = ""
    for clause in clauses:
        is_set_apart = bool(last) and not _SET_APART.isdisjoint({clause.item, last})
        for number, comment in enumerate(clause.above):
            if clause.begins_item and (comment.after_blank or (is_set_apart and number == 0)):
                page.blank()
            page.write(Remark(comment.text, own_line=True), clause.indent)
        if clause.begins_item:
            if clause.marks[0].after_blank or (is_set_apart and not clause.above):
                page.blank()
            last = clause.item if clause.indent else ""
        page.write(_laid_out(clause), clause.indent)
    for comment in below:
        if comment.after_blank:
            page.blank()
        page.write(Remark(comment.text, own_line=True), _INDENT)
    formatted = page.text()
    if len(formatted.encode()) > MAX_FILE_BYTES:
        raise ValueError(f"laid out, the file would be larger than {MAX_FILE_BYTES // 1024} KiB")
    return formatted


def _marks(text: str, parsed: ParsedFile) -> Iterator[_Mark]:
    """Yield the tokens and comments of a file in order."""
    comments = parsed.file.comments if parsed.file else ()
    kinds = [piece.kind for piece in parsed.pieces]
    for place, (kind, following) in enumerate(pairwise([*kinds, ""])):
        # `label fraud of …` begins an item, `label == "fraud"` reads a value.
        if kind == "LABEL" and following != "NAME":
            kinds[place] = "NAME"
    in_order = sorted(
        [(piece.span, kind) for piece, kind in zip(parsed.pieces, kinds, strict=True)]
        + [(comment.span, _COMMENT) for comment in comments]
    )
    end = 0
    for span, kind in in_order:
        between = text[end : span.start]
        lines = between.count("\n")
        yield _Mark(kind, text[slice(*span)].rstrip(), lines > 0 or end == 0, lines > 1)
        end = span.end


def _clauses(marks: Iterable[_Mark]) -> tuple[list[_Clause], tuple[_Mark, ...]]:
    """Split a file into clauses; also return the comments after the last one."""
    clauses: list[_Clause] = []
    waiting: list[_Mark] = []
    item = ""
    for mark in marks:
        if mark.kind == _COMMENT and mark.begins_line:
            waiting.append(mark)
            continue
        begins_item = not clauses or mark.kind.lower() in ITEMS
        if begins_item or mark.kind in _CLAUSES.get(item, ()):
            item = mark.kind if begins_item else item
            indent = 2 * _INDENT if not begins_item else _INDENT if clauses else 0
            clauses.append(_Clause(item, indent, tuple(waiting), [mark]))
        else:
            clauses[-1].marks.extend([*waiting, mark])
        waiting.clear()
    return clauses, tuple(waiting)


def _laid_out(clause: _Clause) -> LayoutGroup:
    atoms = _atoms(clause.marks)
    if clause.item == "TABLE":
        columns = [atom.kind for atom in atoms].index("COLON") + 1
        parts = [atom.part for atom in atoms[:columns]]
        return group([*parts, Line(_INDENT), group(_arrange(atoms[columns:], 0), _INDENT)])
    shifts = _UNDER_WHEN if clause.item in ("CONDITION", "MUST") else _NO_SHIFTS
    return group(_arrange(atoms, _INDENT, shifts))


def _atoms(marks: list[_Mark]) -> list[_Atom]:
    """Return tokens with the spaces between them, each pair of brackets as one."""
    open_brackets: list[list[_Atom]] = []
    atoms: list[_Atom] = []
    before: _Mark | None = None
    for mark in marks:
        if mark.kind == _COMMENT:
            atoms.append(_Atom(_COMMENT, Remark(mark.text, mark.begins_line)))
            continue
        negative = mark.kind == "MINUS" and (before is None or before.kind not in _ENDS_VALUE)
        kind = _NEGATIVE if negative else mark.kind
        atom = _Atom(kind, Word(mark.text, _needs_space(before, mark.kind)))
        before = _Mark(kind, mark.text, mark.begins_line, mark.after_blank)
        if kind in _OPENING:
            open_brackets.append(atoms)
            atoms = [atom]
        elif kind in _CLOSING:
            inside = _bracket(atoms[0], atoms[1:], atom)
            atoms = open_brackets.pop()
            atoms.append(inside)
        else:
            atoms.append(atom)
    return atoms


def _needs_space(before: _Mark | None, kind: str) -> bool:
    if before is None or kind in _CLOSE_BEFORE or before.kind in _CLOSE_AFTER:
        return False
    if kind == "LPAR":
        return before.kind != "NAME"
    if kind == "LSQB":
        return before.kind not in _SUBSCRIPTED
    return True


def _bracket(opening: _Atom, inside: list[_Atom], closing: _Atom) -> _Atom:
    if not inside:
        return _Atom(_BRACKETS, group([opening.part, closing.part]))
    first = next((i for i, atom in enumerate(inside) if not _is_trailing(atom)), len(inside))
    parts = [opening.part, *(atom.part for atom in inside[:first]), Line(_INDENT)]
    content = group(_arrange(inside[first:], 0), _INDENT)
    return _Atom(_BRACKETS, group([*parts, content, Line(0), closing.part]))


def _arrange(
    atoms: list[_Atom], shift: int, shifts: Mapping[str, int] = _NO_SHIFTS, level: int = 0
) -> list[LayoutPart]:
    """Lay out a sequence that breaks at its loosest separators.

    `shift` is the indentation after a break, `shifts` that before certain words.
    """
    length = len(atoms)
    while length and atoms[length - 1].kind == _COMMENT:
        length -= 1
    tail = [atom.part for atom in atoms[length:]]
    starts: list[int] = []
    while level < len(_SEPARATORS) and not starts:
        starts = _starts(atoms[:length], _SEPARATORS[level])
        level += 1
    if not starts:
        return [atom.part for atom in atoms]
    shift = shifts.get(atoms[starts[0]].kind, shift)
    parts = _arrange(atoms[: starts[0]], shift + _INDENT, level=level)
    for start, end in pairwise([*starts, length]):
        chunk = _arrange(atoms[start:end], _INDENT, level=level)
        parts += [Line(shift), group(chunk, shift)]
    return [group(parts), *tail]


def _starts(atoms: list[_Atom], separators: frozenset[str]) -> list[int]:
    """Return the indices where a new line begins if the sequence is broken: before an operator,
    after a comma.
    """
    starts = []
    between = False
    for index, atom in enumerate(atoms):
        if atom.kind == "AND" and between:
            between = False
        elif atom.kind in separators and atom.kind != "COMMA":
            starts.append(index)
        elif atom.kind in separators:
            after = index + 1
            while after < len(atoms) and _is_trailing(atoms[after]):
                after += 1
            starts.append(after)
        between = between or atom.kind == "BETWEEN"
    return [start for start in starts if 0 < start < len(atoms)]


def _is_trailing(atom: _Atom) -> bool:
    return isinstance(atom.part, Remark) and not atom.part.own_line
