"""Parse a text: all syntax errors of a file in one pass, and everything that could be read.

After an error, parsing continues at the next line that begins an item (`condition`, `let`, …), so
that one broken condition doesn't hide the errors of the next. There is no recursion, and the work
is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import Final

from tollkeeper.grammar import syntax, syntax_errors
from tollkeeper.grammar.automaton import Automaton, Scanners, Stack, UnacceptableError, load
from tollkeeper.grammar.blame import FOREIGN_WORDS, ITEMS, Place, blame
from tollkeeper.grammar.builder import MAX_NESTING, Builder, Piece, RefusedError
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.habits_of_rules import rule_in_a_line
from tollkeeper.grammar.syntax import Span

MAX_FILE_BYTES: Final = 256 * 1024
MAX_CONDITIONS: Final = 500
MAX_LETS: Final = 500
MAX_ITEMS: Final[Mapping[type[syntax.Node], tuple[str, int]]] = {
    syntax.Signal: ("signals", 500),
    syntax.Field: ("fields", 200),
    syntax.Metric: ("metrics", 100),
    syntax.Monitor: ("monitors", 100),
    syntax.LabelStatement: ("labels", 100),
}
"""How many statements of a kind a file has, with the word for them."""
MAX_NAME: Final = 64
MAX_ERRORS: Final = 200

_BOM: Final = "\ufeff"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]|\r(?!\n)")
_TOUCHED = re.compile(r"\w{2}")
_SEPARATORS: Final = frozenset(" \n.,()[]{}")
"""Characters that may directly follow any token."""
_OPENING: Final = frozenset({"LPAR", "LSQB", "LBRACE"})
_CLOSING: Final = frozenset({"RPAR", "RSQB", "RBRACE"})
_PREFIX: Final = frozenset({"NOT", "MINUS"})
_HEADER_PIECES: Final = 2
_BEGINS_ITEM: Final = frozenset(item.upper() for item in ITEMS)
_CHECKED: Final = frozenset({"NAME"}) | _OPENING | _PREFIX
_TRACKED: Final = frozenset({"NAME"}) | _OPENING | _CLOSING | _BEGINS_ITEM
_COMMENT = re.compile(r"#[^\n]*")
_DECLARED = re.compile(r"^[ \t]*(?:[A-Za-z_]\w*[ \t]+)?([A-Za-z_]\w*)[ \t]*=(?!=)", re.MULTILINE)
"""What gives a value to a name, also by another word than `let`."""
_ITEM_LINE = re.compile(rf"^[ \t]*({'|'.join(ITEMS)})\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What could be parsed of a file.

    `file` is None if its first line can't be read; otherwise it holds the items without a syntax
    error. `lost` are the names declared by the other items, so that their uses aren't reported, and
    the first words of those without a name.
    `pieces` are all tokens that were read, without comments.
    """

    file: syntax.File | None
    diagnostics: tuple[Diagnostic, ...]
    pieces: tuple[Piece, ...] = ()
    lost: frozenset[str] = frozenset()


def parse_bytes(content: bytes, most_errors: int = MAX_ERRORS) -> ParsedFile:
    """Parse a file as stored: UTF-8, with or without a byte order mark.

    Spans count characters of `content.decode("utf-8", "replace")`.
    """
    if len(content) > MAX_FILE_BYTES:
        return _refuse_file(syntax_errors.file_too_large(MAX_FILE_BYTES))
    try:
        return parse(content.decode("utf-8"), most_errors)
    except UnicodeDecodeError as error:
        place = len(content[: error.start].decode("utf-8", "replace"))
        return _refuse_file(syntax_errors.not_utf8(Span(place, place + 1), content[error.start]))


def parse(text: str, most_errors: int = MAX_ERRORS) -> ParsedFile:
    """Parse any text (docs/language.md), up to so many errors. Never raises."""
    if len(text) > MAX_FILE_BYTES or len(text.encode("utf-8", "replace")) > MAX_FILE_BYTES:
        return _refuse_file(syntax_errors.file_too_large(MAX_FILE_BYTES))
    if control := _CONTROL.search(text):
        return _refuse_file(syntax_errors.control_character(Span(*control.span()), control[0]))
    language = _language()
    with language.lock:
        language.builder.restart()
        return _Reading(text, language, most_errors).parsed()


def _refuse_file(diagnostic: Diagnostic) -> ParsedFile:
    return ParsedFile(None, (diagnostic,))


@dataclass(frozen=True, slots=True)
class _Language:
    """The loaded grammar, its builder, and a lock, since one parse at a time may use them."""

    automaton: Automaton
    scanners: Scanners
    builder: Builder
    reserved: frozenset[str]
    lock: Lock


@cache
def _language() -> _Language:
    builder = Builder()
    automaton = load(builder)
    return _Language(automaton, Scanners(automaton), builder, frozenset(automaton.words), Lock())


def reserved_words() -> frozenset[str]:
    """Return the words that can't be plain names: all that are quoted in rule.lark."""
    return _language().reserved


def expected_tokens(text: str) -> frozenset[str]:
    """Return the kinds of tokens that can follow this text; none after an error in the same item.

    A kind is a terminal of rule.lark: `NAME`, `STRING`, or a keyword in capitals. Never raises.
    """
    if len(text) > MAX_FILE_BYTES or _CONTROL.search(text):
        return frozenset()
    language = _language()
    with language.lock:
        language.builder.restart()
        return _Reading(text, language).expected()


def keywords() -> Mapping[str, str]:
    """Return the kind of each reserved word."""
    return _language().automaton.words


class _Reading:
    """One pass over one text."""

    def __init__(self, text: str, language: _Language, most_errors: int = MAX_ERRORS) -> None:
        self.text = text
        self.language = language
        self.most_errors = most_errors
        self.stack = Stack(language.automaton)
        self.position = len(_BOM) if text.startswith(_BOM) else 0
        self.diagnostics: list[Diagnostic] = []
        self.pieces: list[Piece] = []
        self.brackets: list[Piece] = []
        self.item: Piece | None = None
        self.item_name: Piece | None = None
        self.lost: set[str] = set()
        self.header_lost = False

    @property
    def end(self) -> int:
        """The end of the last token."""
        return self.pieces[-1].span.end if self.pieces else 0

    def parsed(self) -> ParsedFile:
        file = self._file()
        if file is not None:
            file = replace(file, comments=self._comments())
            self.diagnostics += _past_bounds(file)
            self.lost -= {item.name.text for item in file.items if hasattr(item, "name")}
        in_order = sorted(self.diagnostics, key=lambda diagnostic: diagnostic.span)
        return ParsedFile(file, tuple(in_order), tuple(self.pieces), frozenset(self.lost))

    def expected(self) -> frozenset[str]:
        while True:
            try:
                self._read()
            except RefusedError as refused:
                self._report(refused.diagnostic)
            except UnacceptableError:
                self._report(blame(self._place(self.position)))
            else:
                return frozenset(self.stack.accepted())
            if not self._resume():
                return frozenset()

    def _file(self) -> syntax.File | None:
        while True:
            try:
                self._read()
                return self._finish()
            except RefusedError as refused:
                diagnostic = refused.diagnostic
            except UnacceptableError:
                diagnostic = blame(self._place(self.position))
            self._report(diagnostic)
            if not self._resume():
                return self._finish_without_unfinished()

    def _read(self) -> None:
        """Read tokens up to the end or the first error; `position` is where it stopped."""
        text, scanners, states = self.text, self.language.scanners, self.stack.states
        between, words = self.language.automaton.between, self.language.automaton.words
        feed, pieces, touched = self.stack.feed, self.pieces, _TOUCHED.match
        while found := scanners[states[-1]].match(text, self.position):
            kind = found.lastgroup or ""
            word, (start, end) = found[kind], found.span(kind)
            self.position = start
            if kind == "NAME" and word in words:
                kind = words[word]
            read = Piece(kind, word, Span(start, end))
            if kind in _CHECKED:
                self._check(read)
            if text[end : end + 1] not in _SEPARATORS and touched(text, end - 1):
                raise UnacceptableError
            feed(read)
            if kind in _TRACKED:
                self._note(read)
            pieces.append(read)
            self.position = end
        self.position = between.match(text, self.position).end()  # type: ignore[union-attr]  # it matches nothing as well
        if self.position < len(text):
            raise UnacceptableError

    def _check(self, read: Piece) -> None:
        kind, text, span = read
        if kind == "NAME":
            if text.lower() in self.language.reserved or text in FOREIGN_WORDS:
                raise UnacceptableError
        elif kind in _OPENING:
            if len(self.brackets) == MAX_NESTING:
                raise RefusedError(syntax_errors.nested_too_deep(span, MAX_NESTING))
        elif len(before := self.pieces[-MAX_NESTING:]) == MAX_NESTING and all(
            each.kind in _PREFIX for each in before
        ):
            raise RefusedError(syntax_errors.nested_too_deep(span, MAX_NESTING))

    def _note(self, read: Piece) -> None:
        kind = read.kind
        if kind == "NAME":
            if self.pieces[-1] is self.item:
                self.item_name = read
        elif kind in _OPENING:
            self.brackets.append(read)
        elif kind in _CLOSING:
            self.brackets.pop()
        elif kind in _BEGINS_ITEM:
            self.item, self.item_name = read, None

    def _place(self, position: int) -> Place:
        return Place(
            text=self.text,
            position=position,
            previous=self.pieces[-1] if self.pieces else None,
            operand=self._operand(),
            accepted=frozenset(self.stack.accepted()),
            bracket=self.brackets[-1] if self.brackets else None,
            kind=self.pieces[0].text if self.pieces else None,
            item=self.item.text if self.item else None,
            name=self.item_name,
            reserved=self.language.reserved,
        )

    def _operand(self) -> Span | None:
        """The place of the last value that was read; a call is one, and so is what is in brackets."""
        if self.pieces and self.pieces[-1].kind == "RPAR":
            return self._bracketed()
        values = reversed(self.stack.values)
        return next((each.span for each in values if isinstance(each, syntax.Node)), None)

    def _bracketed(self) -> Span:
        """The place of what the last bracket closes, with the name of a function before it."""
        depth, index = 1, len(self.pieces) - 1
        while depth:
            index -= 1
            kind = self.pieces[index].kind
            depth += (kind in _CLOSING) - (kind in _OPENING)
        index -= self.pieces[index - 1].kind == "NAME"
        return Span(self.pieces[index].span.start, self.end)

    def _report(self, diagnostic: Diagnostic) -> None:
        if not self.diagnostics or self.diagnostics[-1].span != diagnostic.span:
            self.diagnostics.append(diagnostic)

    def _resume(self) -> bool:
        """Continue at the next line that begins an item; returns whether there is one.

        What follows a second declaration belongs to another file.
        """
        if self.diagnostics[-1].code == "second-declaration":
            return False
        if self.item is not None:
            self.lost.add((self.item_name or self.item).text)
        if len(self.pieces) < _HEADER_PIECES:
            self._suppose_header()
        self.brackets.clear()
        self._report_rules_in_lines()
        passed = self.end
        for line in _ITEM_LINE.finditer(self.text, self.end):
            self.lost |= {each[1] for each in _DECLARED.finditer(self.text, passed, line.start())}
            passed = line.end()
            if len(self.diagnostics) >= self.most_errors:
                self._report(syntax_errors.too_many_errors(Span(*line.span(1)), self.most_errors))
                return False
            keyword = Piece(line[1].upper(), line[1], Span(*line.span(1)))
            if self._begin(keyword):
                self._note(keyword)
                self.pieces.append(keyword)
                self.position = line.end(1)
                return True
            self._report(blame(self._place(line.start(1))))
        return False

    def _report_rules_in_lines(self) -> None:
        """Report all lines in a row that read as rules by themselves, not only the first."""
        position = self.position
        while len(self.diagnostics) < self.most_errors:
            found = rule_in_a_line(self._place(position))
            if found is None:
                return
            self._report(found)
            position = found.fixes[0].edits[0].span.end

    def _suppose_header(self) -> None:
        """Replace an unreadable first line by a made-up one, so that what follows can be parsed."""
        self.header_lost = True
        kind = self.pieces[0] if self.pieces else Piece("RULE", "rule", Span(0, 0))
        self.pieces[:] = [kind, Piece("NAME", "", Span(kind.span.end, kind.span.end))]
        self.stack.truncate(1)
        for part in self.pieces:
            self.stack.feed(part)

    def _begin(self, keyword: Piece) -> bool:
        """Begin an item, dropping one before it that is incomplete."""
        try:
            self.stack.feed(keyword)
        except (UnacceptableError, RefusedError):
            self._drop_unfinished()
            if not self._takes(self.stack.states[-1], keyword.kind):
                return False
            self.stack.feed(keyword)
        return True

    def _takes(self, state: int, kind: str) -> bool:
        """Whether a state shifts this token without a reduction first."""
        return isinstance(self.language.automaton.actions[state].get(kind), int)

    def _finish(self) -> syntax.File | None:
        file: syntax.File = self.stack.finished()
        return None if self.header_lost else file

    def _finish_without_unfinished(self) -> syntax.File | None:
        """Return the file without the last item, if that is incomplete."""
        try:
            return self._finish()
        except (UnacceptableError, RefusedError):
            self._drop_unfinished()
            return self._finish()

    def _drop_unfinished(self) -> None:
        """Cut the stack back to where an item can begin."""
        states = self.stack.states
        for height in range(len(states), 0, -1):
            if any(self._takes(states[height - 1], item) for item in ("LET", "TEST")):
                self.stack.truncate(height)
                return

    def _comments(self) -> tuple[syntax.Comment, ...]:
        found: list[syntax.Comment] = []
        position = 0
        while comment := _COMMENT.search(self.text, position):
            piece = bisect_right(self.pieces, comment.start(), key=lambda read: read.span.start) - 1
            held = self.pieces[piece].span.end if piece >= 0 else 0
            if comment.start() < held:  # a string that contains `#`
                position = held
            else:
                found.append(self.language.builder.comment(comment))
                position = comment.end()
        return tuple(found)


def _past_bounds(file: syntax.File) -> list[Diagnostic]:
    conditions = [item for item in file.items if isinstance(item, syntax.Condition)]
    lets = [item for item in file.items if isinstance(item, syntax.Let)]
    return [
        *(
            syntax_errors.too_many_conditions(item.name.span, MAX_CONDITIONS)
            for item in conditions[MAX_CONDITIONS : MAX_CONDITIONS + 1]
        ),
        *(
            syntax_errors.too_many_lets(item.name.span, MAX_LETS)
            for item in lets[MAX_LETS : MAX_LETS + 1]
        ),
        *(
            syntax_errors.too_many_items(item.span, noun, most)
            for kind, (noun, most) in MAX_ITEMS.items()
            for item in [each for each in file.items if isinstance(each, kind)][most : most + 1]
        ),
        *(
            syntax_errors.name_too_long(name.span, MAX_NAME)
            for name in _declared_names(file)
            if len(name.text) > MAX_NAME
        ),
    ]


def _declared_names(file: syntax.File) -> Iterator[syntax.Identifier]:
    """Yield the names that a file declares: its own, and those of items and columns."""
    yield file.name
    nameless = (
        *(syntax.Use, syntax.Must, syntax.Otherwise),
        *(syntax.Baseline, syntax.LabelStatement, syntax.Test),
    )
    for item in file.items:
        if not isinstance(item, nameless):
            yield item.name
        if isinstance(item, syntax.TableDeclaration):
            yield from (column.name for column in item.columns)
