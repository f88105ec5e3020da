"""Choose the syntax error for a place where parsing stopped.

The parser knows which tokens it would have accepted and what came before; the text shows what is
there instead. `blame` tries the possible explanations in order, the most telling first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tollkeeper.grammar import habit_errors, syntax_errors
from tollkeeper.grammar.builder import Piece
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.habits import habit
from tollkeeper.grammar.syntax import Span

DECLARATIONS: Final = ("rule", "scorecard", "event", "definitions")
_SHARED: Final = ("use", "list", "table", "let", "test")
_HOLDS: Final = {
    "rule": (*_SHARED, "condition", "must", "otherwise"),
    "scorecard": (*_SHARED, "baseline", "signal"),
    "event": (*_SHARED, "field", "metric", "monitor", "label"),
    "definitions": ("list", "table", "let"),
}
ITEMS: Final = tuple(dict.fromkeys(item for items in _HOLDS.values() for item in items))

_IS_MISSING = "write `is missing` or `is present`"
_CONDITIONS = "write `condition NAME when … then …`, one for each case"
FOREIGN_WORDS: Final = {
    "null": _IS_MISSING,
    "NULL": _IS_MISSING,
    "nil": _IS_MISSING,
    "None": _IS_MISSING,
    "undefined": _IS_MISSING,
    "if": _CONDITIONS,
    "elif": _CONDITIONS,
    "else": "write `otherwise` at the end of the rule",
    "unless": "write `when not …`",
    "return": "write `then allow`, `then challenge` or `then deny`",
}
_FOREIGN_OPERATORS: Final = {
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
    "<>": "!=",
    "===": "==",
    "!==": "!=",
    "=<": "<=",
    "=>": ">=",
    "=~": "matches",
    "~": "matches",
    ":=": "=",
    "%": None,
    "^": None,
    "**": None,
    "//": "/",
    "?": None,
    "->": "then",
    ";": None,
    "{": None,
    "}": None,
    "$": None,
    "\\": None,
    "++": "+",
    "--": "-",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "−": "-",
    "–": "-",
    "—": "-",
    "×": "*",
    "÷": "/",
    "∧": "and",
    "∨": "or",
    "¬": "not",
}
_NOT_QUITE: Final = frozenset({"=>", "=~", "~", ":=", "->", "++", "--", "//"})
"""Operators of other languages with more than one likely meaning."""
_COMPARING: Final = frozenset(
    {"==", "!=", "<", "<=", ">", ">=", "between", "in", "contains", "starts", "ends", "matches"}
    | {"is", "not"}
)
_JOINING: Final = _COMPARING | {"and", "or", "+", "-", "*", "/"}
_QUOTES: Final = frozenset("'`‘’“”„«»")
_QUOTED = re.compile(
    "|".join(
        f"{opening}[^{closing}\\n]{{0,200}}{closing}"
        for opening, closing in ("''", "``", "‘’", "“”", "„“", "«»", "””")
    )
)
_NEXT_PIECE = re.compile(
    r"[A-Za-z_]\w*|@\w*|(?P<number>\.?[0-9][\w.]*(?:,[0-9]{3}\b)*(?:\.[0-9]+)?)|\"[^\"\n]*\"?"
    r"|===|!==|==|!=|<>|<=|=<|>=|=>|=~|:=|->|&&|\|\||\*\*|//|.",
    re.DOTALL,
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|[0-9]+(ms|s|m|h|d)")
_STRING = re.compile(r'"[^"\\\n]*(\\.[^"\\\n]*)*"')
_PATTERN = re.compile(r"/[^/\n ]+/i?")
_WORD = re.compile(r"\w+")
_DASHED = re.compile(r"[\w-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")


@dataclass(frozen=True, slots=True)
class Place:
    """Where parsing stopped.

    `accepted` are the terminals that were possible. `previous` is the token before, `operand` the
    place of the last value, `bracket` the innermost open bracket. `kind` is the file's first word,
    `item` the first word of the item being parsed, `name` its name.
    """

    text: str
    position: int
    previous: Piece | None
    operand: Span | None
    accepted: frozenset[str]
    bracket: Piece | None
    kind: str | None
    item: str | None
    name: Piece | None
    reserved: frozenset[str]

    @property
    def start(self) -> int:
        """The start of the text that isn't accepted."""
        return _after_blank(self.text, self.position)

    @property
    def found(self) -> str:
        """The text that isn't accepted; `""` at the end of the file."""
        found = _NEXT_PIECE.match(self.text, self.start)
        return found[0] if found else ""

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.found))

    @property
    def gap(self) -> Span:
        """Where something is missing: the text that isn't accepted, or, if that is on a later line,
        the end of the previous token.
        """
        end = self.previous.span.end if self.previous else 0
        return Span(end, end) if self.begins_line or not self.found else self.span

    @property
    def begins_line(self) -> bool:
        """Whether the text that isn't accepted is on a later line than the previous token."""
        end = self.previous.span.end if self.previous else 0
        return self.text.find("\n", end, self.start) >= 0

    @property
    def stray(self) -> bool:
        """Whether the text that isn't accepted is on the same line, and no reserved word."""
        return bool(self.found) and self.found not in self.reserved and not self.begins_line

    @property
    def before(self) -> str:
        return self.previous.text if self.previous else ""

    @property
    def touches(self) -> bool:
        return self.previous is not None and self.previous.span.end == self.start

    def takes(self, *terminals: str) -> bool:
        return not self.accepted.isdisjoint(terminals)


def blame(place: Place) -> Diagnostic:
    """Return the diagnostic for a place, with the span to change."""
    for question in (
        habit,
        _curves,
        _operators,
        _characters,
        _words,
        _brackets,
        _clauses,
        _values,
        _items,
    ):
        if diagnostic := question(place):
            return diagnostic
    words = [word.lower() for word in place.accepted if word.lower() in place.reserved]
    return syntax_errors.unexpected(place.gap, place.found, sorted(words))


def _curves(place: Place) -> Diagnostic | None:
    """Curves: before the steps, and inside the braces."""
    if place.takes("LBRACE") and (place.begins_line or not place.found):
        return syntax_errors.missing_else(place.gap)
    if place.bracket is None or place.bracket.text != "{":
        return None
    if place.takes("NUMBER"):
        return syntax_errors.missing_value(place.gap, place.before) if place.found == "}" else None
    if place.takes("RBRACE"):
        return syntax_errors.unclosed_bracket(
            place.bracket.span, place.bracket.text, place.previous.span.end if place.previous else 0
        )
    if place.takes("COMMA", "COLON", "ELSE", "MISSING"):
        return syntax_errors.missing_else(place.gap)
    return None


def _characters(place: Place) -> Diagnostic | None:
    """Quotes, numbers, and characters that are only allowed in strings."""
    found, span = place.found, place.span
    if found[:1] in _QUOTES and found:
        quoted = _QUOTED.match(place.text, span.start)
        if quoted is None:
            return syntax_errors.wrong_quotes(span, found, None)
        return syntax_errors.wrong_quotes(Span(*quoted.span()), found, quoted[0][1:-1])
    if found.startswith('"') and not _STRING.match(place.text, span.start):
        line_end = place.text.find("\n", span.start)
        end = len(place.text) if line_end < 0 else line_end
        return syntax_errors.unclosed_text(Span(span.start, end))
    return _name(place) or _number(place) or _letters(place)


def _name(place: Place) -> Diagnostic | None:
    """A name that starts with a digit or contains a dash."""
    start = place.start
    if place.found == "-" and place.touches and place.previous and place.previous.kind == "NAME":
        start = place.previous.span.start
    elif place.accepted != {"NAME"} or not place.found[:1].isdigit():
        return None
    written = _DASHED.match(place.text, start)
    span = Span(*written.span()) if written else place.span
    return syntax_errors.bad_name(span, place.text[span.start : span.end])


def _number(place: Place) -> Diagnostic | None:
    previous, start = place.previous, place.start
    if previous is not None and previous.kind == "NUMBER" and place.touches:
        start = previous.span.start
    shape = _NEXT_PIECE.match(place.text, start)
    written = shape["number"] if shape else None
    if written is None or _NUMBER.fullmatch(written):
        return None
    plain = written.replace("_", "").replace(",", "")
    plain = f"0{plain}" if plain.startswith(".") else plain.removesuffix(".")
    correction = plain if _NUMBER.fullmatch(plain) else None
    return syntax_errors.bad_number(Span(start, start + len(written)), written, correction)


def _letters(place: Place) -> Diagnostic | None:
    found, start = place.found, place.start
    if found and not found.isascii() and (found[0].isalpha() or found[0] == "_"):
        word = _WORD.match(place.text, start)
        end = word.end() if word else place.span.end
        return syntax_errors.bad_name(Span(start, end), place.text[start:end])
    if found and not found.isascii() and not found.startswith('"'):
        return syntax_errors.odd_character(Span(start, start + 1), found[0])
    if found == "@" or (found.startswith("@") and not found[1:].isidentifier()):
        return syntax_errors.missing_name(place.span, "@")
    return None


def _operators(place: Place) -> Diagnostic | None:
    """Operators of other languages."""
    found, span = place.found, place.span
    if place.touches and place.previous is not None:
        joined = place.before + found
        if joined == "==":
            whole = Span(place.previous.span.start, span.end)
            keyword = "given" if place.item == "test" else place.item or place.before
            return syntax_errors.double_equals(whole, keyword)
        if joined in _FOREIGN_OPERATORS and joined not in ("--", "//"):
            whole = Span(place.previous.span.start, span.end)
            return _foreign_operator(place, whole, joined)
    if found == "=" and place.takes("COMPARISON", "OR"):
        return syntax_errors.single_equals(span)
    pattern = _PATTERN.match(place.text, span.start)
    if pattern and place.takes("NUMBER"):
        return syntax_errors.misplaced_pattern(Span(*pattern.span()))
    if found in _FOREIGN_OPERATORS:
        return _foreign_operator(place, span, found)
    return None


def _foreign_operator(place: Place, span: Span, found: str) -> Diagnostic:
    correction = _FOREIGN_OPERATORS[found]
    written = correction
    if correction is not None and correction.isalpha():
        before, after = place.text[span.start - 1 : span.start], place.text[span.end : span.end + 1]
        written = f"{' ' * before.isalnum()}{correction}{' ' * (after.isalnum() or after == '(')}"
    return syntax_errors.unknown_operator(
        span, found, correction, written, is_same=found not in _NOT_QUITE
    )


def _words(place: Place) -> Diagnostic | None:
    """Words in capitals, words of other languages, reserved words used as names."""
    found, span = place.found, place.span
    if found in FOREIGN_WORDS:
        return syntax_errors.foreign_word(span, found, FOREIGN_WORDS[found])
    if found not in place.reserved and found.lower() in place.reserved:
        return syntax_errors.keyword_case(span, found)
    if place.accepted == {"NAME"} and found in place.reserved and not place.begins_line:
        following = _NEXT_PIECE.match(place.text, _after_blank(place.text, span.end))
        if following and (following[0] in place.reserved | {":", "="} or following[0][0] == '"'):
            return syntax_errors.reserved_word(span, found)
    return None


def _after_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _brackets(place: Place) -> Diagnostic | None:
    found = place.found
    if found in (")", "]") and place.bracket is None:
        return syntax_errors.unopened_bracket(place.span, found)
    if place.bracket is None or not place.takes("RPAR", "RSQB") or place.takes("NUMBER"):
        return None
    if found in ("by", "over", "where") and place.takes("RPAR"):
        return syntax_errors.clause_order(place.span, found)
    if place.accepted <= {"COMMA", "RSQB"} and found in _JOINING:
        return syntax_errors.computed_item(place.span, found)
    if not found or found in (")", "]") or found in place.reserved - _COMPARING:
        return syntax_errors.unclosed_bracket(
            place.bracket.span, place.bracket.text, place.previous.span.end if place.previous else 0
        )
    return None


_SOLE: Final[dict[frozenset[str], Callable[[Place], Diagnostic]]] = {
    frozenset({"NAME"}): lambda place: syntax_errors.missing_name(place.gap, _place_name(place)),
    frozenset({"MEMBER"}): lambda place: syntax_errors.missing_member(place.gap),
    frozenset({"REGEX"}): lambda place: syntax_errors.missing_pattern(place.gap),
    frozenset({"DURATION"}): lambda place: syntax_errors.missing_duration(place.gap, place.before),
    frozenset({"MISSING", "PRESENT"}): (
        lambda place: syntax_errors.missing_state(place.gap, place.found)
    ),
    frozenset({"WITH"}): lambda place: syntax_errors.missing_with(place.gap, place.before),
    frozenset({"IN"}): lambda place: syntax_errors.missing_in(place.gap),
    frozenset({"STRING"}): lambda place: syntax_errors.missing_text(place.gap, place.before),
    frozenset({"ALERT"}): lambda place: syntax_errors.missing_alert(place.gap),
}


def _place_name(place: Place) -> str:
    return place.before if place.before in place.reserved else place.item or place.before


def _clauses(place: Place) -> Diagnostic | None:
    """Missing parts of an item."""
    item = place.item or place.kind or ""
    if only := _SOLE.get(place.accepted):
        return only(place)
    if place.takes("ALLOW") and not place.takes("NUMBER"):
        return _action(place)
    if place.takes("LIST_NAME") and not place.takes("NUMBER"):
        return syntax_errors.missing_given(place.gap)
    if place.takes("COLON") or place.before == ":":
        return syntax_errors.missing_type(place.gap, item)
    if place.accepted == {"THEN"} and not place.stray:
        return syntax_errors.missing_then(place.gap)
    if place.accepted <= {"STRING", "WHEN"} and place.takes("WHEN"):
        return syntax_errors.missing_when(place.gap, item)
    if place.accepted <= {"STRING", "ADDS", "CURVES"} and place.takes("ADDS"):
        return syntax_errors.missing_adds(place.gap)
    if place.accepted <= {"STRING", "EQUAL"} and place.takes("EQUAL"):
        return syntax_errors.missing_equals(place.gap, item)
    if place.takes("EQUAL") and item == "test":
        return syntax_errors.missing_equals(place.gap, "given")
    return None


def _action(place: Place) -> Diagnostic:
    actions = ["allow", "challenge", "deny"] + ["default"] * place.takes("DEFAULT")
    word = place.found if place.found[:1].isalpha() and place.found not in place.reserved else ""
    if not word and place.before == "then":
        return syntax_errors.missing_then(place.gap)
    return syntax_errors.unknown_action(place.gap, word, actions)


def _values(place: Place) -> Diagnostic | None:
    """Inside an expression, or right after one."""
    found = place.found
    if place.takes("NUMBER"):
        return syntax_errors.missing_value(place.gap, place.before)
    if place.takes("AND") and not place.takes("OR"):
        return syntax_errors.missing_and(place.gap)
    if not place.takes("OR"):
        return None
    if found in _COMPARING:
        return syntax_errors.chained_comparison(place.span, found)
    if place.stray:
        begins_value = found[0] in '"(@[_' or found[0].isalnum()
        return syntax_errors.missing_operator(place.span, found) if begins_value else None
    if place.takes("THEN"):
        return syntax_errors.missing_then(place.gap)
    if place.takes("ADDS"):
        return syntax_errors.missing_adds(place.gap)
    return None


def _items(place: Place) -> Diagnostic | None:
    """Between items, and at the start of the file."""
    found, kind = place.found, place.kind
    if place.takes("RULE") and found in ITEMS:
        holder = next(each for each in DECLARATIONS if found in _HOLDS[each])
        return habit_errors.missing_header(place.span, found, holder)
    if place.takes("RULE"):
        return syntax_errors.missing_declaration(place.span, found)
    if place.takes("EXPECT") and place.before != "expect" and not place.takes("LET", "TEST"):
        return syntax_errors.missing_expect(place.gap)
    if kind is None or not place.takes("TEST", "LET"):
        return None
    if found in DECLARATIONS:
        return syntax_errors.second_declaration(place.span, found)
    if found in _HOLDS[kind]:
        return syntax_errors.after_otherwise(place.span, found)
    if found in ITEMS:
        holders = [holder for holder in DECLARATIONS if found in _HOLDS[holder]]
        return syntax_errors.misplaced_item(place.span, found, kind, holders)
    if found and found[0].isalpha():
        items = [item for item in _HOLDS[kind] if item.upper() in place.accepted]
        return syntax_errors.unknown_item(place.span, found, items)
    return None
