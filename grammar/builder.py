"""Makes the nodes of syntax.py while the parser reduces the rules of rule.lark.

One method for each grammar rule, named for the rule or its alias. It gets everything that the rule
matched, keywords and punctuation included, so that a node's span runs from its first child to its
last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args

from tollkeeper.grammar import syntax, syntax_errors
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span

MAX_NESTING = 64
MAX_DURATION_DIGITS = 15

Child: TypeAlias = Any
NodeT = TypeVar("NodeT", bound=syntax.Node)

_EXPRESSIONS = frozenset(get_args(syntax.Expression))
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL)
_PLAIN_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}


class Piece(NamedTuple):
    """A token, for code that works on the text.

    `kind` is the terminal's name in rule.lark; of a keyword, the word in capitals.
    """

    kind: str
    text: str
    span: Span


class RefusedError(Exception):
    """A text that the grammar accepts but the language doesn't; carries the diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Builder:
    """Numbers the nodes, and measures each expression's depth, while a file is parsed."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Reset for another file."""
        self._next_id = 0
        self._heights: dict[int, int] = {}

    def _node(self, kind: Callable[..., NodeT], children: list[Child], *fields: object) -> NodeT:
        span = Span(children[0].span[0], children[-1].span[1])
        self._next_id += 1
        if kind in _EXPRESSIONS:
            height, heights = 1, self._heights
            for child in children:
                if type(child) is not Piece and (inner := heights.get(child.id, 0)) >= height:
                    height = inner + 1
            if height > MAX_NESTING:
                raise RefusedError(syntax_errors.nested_too_deep(span, MAX_NESTING))
            self._heights[self._next_id] = height
        return kind(self._next_id, span, *fields)

    def sequence(self, children: list[Child]) -> list[Child]:
        """The parts of a `(…)*` or `(…)+`."""
        return children

    # Files

    def rule(self, children: list[Child]) -> syntax.File:
        word, name, *rest = children
        title = rest.pop(0) if rest and isinstance(rest[0], syntax.Text) else None
        return self._node(syntax.File, children, word.text, name, title, tuple(rest), ())

    scorecard = event = definitions = rule

    def name(self, children: list[Child]) -> syntax.Identifier:
        return self._node(syntax.Identifier, children, children[0].text)

    action = default = name

    def comment(self, found: re.Match[str]) -> syntax.Comment:
        """Make the node of a comment; the grammar ignores comments."""
        self._next_id += 1
        return syntax.Comment(self._next_id, Span(*found.span()), found[0][1:].rstrip())

    # Items

    def use(self, children: list[Child]) -> syntax.Use:
        return self._node(syntax.Use, children, children[1])

    def list_declaration(self, children: list[Child]) -> syntax.ListDeclaration:
        _, name, _, value_type = children
        return self._node(syntax.ListDeclaration, children, name, value_type)

    def table(self, children: list[Child]) -> syntax.TableDeclaration:
        name, *by = _only(syntax.Identifier, children)
        columns = tuple(_only(syntax.Column, children))
        lookup = by[0] if by else None
        return self._node(syntax.TableDeclaration, children, name, lookup, columns)

    def column(self, children: list[Child]) -> syntax.Column:
        name, _, value_type = children
        return self._node(syntax.Column, children, name, value_type)

    def named_type(self, children: list[Child]) -> syntax.ValueType:
        return self._node(syntax.ValueType, children, children[0], ())

    def choice_type(self, children: list[Child]) -> syntax.ValueType:
        choices = tuple(_only(syntax.Text, children))
        return self._node(syntax.ValueType, children, None, choices)

    def let(self, children: list[Child]) -> syntax.Let:
        _, name, _, value = children
        return self._node(syntax.Let, children, name, value)

    def condition(self, children: list[Child]) -> syntax.Condition:
        _, name, *title, _, when, _, action = children
        return self._node(syntax.Condition, children, name, _optional(title), when, action)

    def must(self, children: list[Child]) -> syntax.Must:
        *title, when = (
            child
            for child in _only(syntax.Node, children)
            if not isinstance(child, syntax.Identifier)
        )
        actions = tuple(_only(syntax.Identifier, children))
        never = any(isinstance(child, Piece) and child.kind == "NEVER" for child in children)
        return self._node(syntax.Must, children, _optional(title), when, never, actions)

    def otherwise(self, children: list[Child]) -> syntax.Otherwise:
        return self._node(syntax.Otherwise, children, children[1])

    def baseline(self, children: list[Child]) -> syntax.Baseline:
        return self._node(syntax.Baseline, children, children[1])

    def signal(self, children: list[Child]) -> syntax.Signal:
        name, *parts = _only(syntax.Node, children)
        words = [child for child in children if isinstance(child, Piece)]
        when = parts.pop() if words[-1].kind == "WHEN" else None
        adds = parts.pop()
        return self._node(syntax.Signal, children, name, _optional(parts), adds, when)

    def curve(self, children: list[Child]) -> syntax.Curve:
        _, value, *rest = children
        direction = rest[0].text if rest[0].kind in ("RISING", "FALLING") else None
        steps = tuple(_only(syntax.CurveStep, rest))
        beyond = _clause(rest, "ELSE")[0]
        absent = _optional(_clause(rest, "MISSING"))
        return self._node(syntax.Curve, children, value, direction, steps, beyond, absent)

    def step(self, children: list[Child]) -> syntax.CurveStep:
        sign, bound, _, adds = children
        return self._node(syntax.CurveStep, children, sign.text, bound, adds)

    def field(self, children: list[Child]) -> syntax.Field:
        _, name, _, value_type, *required = children
        return self._node(syntax.Field, children, name, value_type, bool(required))

    def required(self, children: list[Child]) -> Child:
        return children[0]

    def metric(self, children: list[Child]) -> syntax.Metric:
        _, name, *title, _, value = children
        return self._node(syntax.Metric, children, name, _optional(title), value)

    def monitor(self, children: list[Child]) -> syntax.Monitor:
        name, *title, when = _only(syntax.Node, children)
        by = _clause(children, "BY")
        every = _optional(_clause(children, "EVERY"))
        return self._node(syntax.Monitor, children, name, _optional(title), when, tuple(by), every)

    def label(self, children: list[Child]) -> syntax.LabelStatement:
        _, label, _, payment, _, when = children
        return self._node(syntax.LabelStatement, children, label, payment, when)

    # Tests

    def test(self, children: list[Child]) -> syntax.Test:
        given = [c for c in children if isinstance(c, syntax.GivenValues | syntax.GivenFile)]
        expect = children[2 + len(given) :]
        return self._node(syntax.Test, children, children[1], tuple(given), tuple(expect))

    def given_values(self, children: list[Child]) -> syntax.GivenValues:
        assignments = tuple(_only(syntax.Assignment, children))
        return self._node(syntax.GivenValues, children, assignments)

    def given_file(self, children: list[Child]) -> syntax.GivenFile:
        _, kind, path = children
        if kind.text not in ("payment", "history", "event"):
            raise RefusedError(syntax_errors.unknown_given_file(kind.span, kind.text))
        return self._node(syntax.GivenFile, children, kind.text, path)

    def assignment(self, children: list[Child]) -> syntax.Assignment:
        target, _, value = children
        return self._node(syntax.Assignment, children, target, value)

    def expect_action(self, children: list[Child]) -> syntax.ExpectAction:
        action, *by = _only(syntax.Identifier, children)
        return self._node(syntax.ExpectAction, children, action, _optional(by))

    def expect_alert(self, children: list[Child]) -> syntax.ExpectAlert:
        monitor = _optional(list(_only(syntax.Identifier, children)))
        negated = children[1].kind == "NO"
        return self._node(syntax.ExpectAlert, children, monitor, negated)

    def expect_value(self, children: list[Child]) -> syntax.ExpectValue:
        return self._node(syntax.ExpectValue, children, children[1])

    # Logic and tests of values

    def disjunction(self, children: list[Child]) -> syntax.Or:
        return self._node(syntax.Or, children, tuple(children[::2]))

    def conjunction(self, children: list[Child]) -> syntax.And:
        return self._node(syntax.And, children, tuple(children[::2]))

    def negated(self, children: list[Child]) -> syntax.Not:
        return self._node(syntax.Not, children, children[1])

    def compare(self, children: list[Child]) -> syntax.Compare:
        left, operator, right = children
        return self._node(syntax.Compare, children, operator.text, left, right)

    def between(self, children: list[Child]) -> syntax.Between:
        value, _, low, _, high = children
        return self._node(syntax.Between, children, value, low, high)

    def membership(self, children: list[Child]) -> syntax.Membership:
        value, *words, container = children
        return self._node(syntax.Membership, children, value, container, len(words) == 2)

    def text_test(self, children: list[Child]) -> syntax.TextTest:
        left, *words, right = children
        return self._node(
            syntax.TextTest, children, " ".join(word.text for word in words), left, right
        )

    def matches(self, children: list[Child]) -> syntax.Matches:
        value, _, literal = children
        body, _, flag = literal.text[1:].rpartition("/")
        pattern = re.sub(r"\\(.)", lambda m: "/" if m[1] == "/" else m[0], body)
        regex = self._node(syntax.Regex, [literal], pattern, flag == "i")
        return self._node(syntax.Matches, children, value, regex)

    def presence(self, children: list[Child]) -> syntax.Presence:
        operand, _, state = children
        return self._node(syntax.Presence, children, operand, state.text)

    # Values

    def arithmetic(self, children: list[Child]) -> syntax.Arithmetic:
        left, operator, right = children
        return self._node(syntax.Arithmetic, children, operator.text, left, right)

    def negative(self, children: list[Child]) -> syntax.Negate:
        return self._node(syntax.Negate, children, children[1])

    def number(self, children: list[Child]) -> syntax.Number:
        return self._node(syntax.Number, children, children[0].text)

    def boolean(self, children: list[Child]) -> syntax.Boolean:
        return self._node(syntax.Boolean, children, children[0].kind == "TRUE")

    def duration(self, children: list[Child]) -> syntax.Duration:
        token = children[0]
        digits = token.text.rstrip("smhd")
        if len(digits) > MAX_DURATION_DIGITS:
            raise RefusedError(syntax_errors.duration_too_long(token.span))
        return self._node(syntax.Duration, children, int(digits), token.text[len(digits) :])

    def text(self, children: list[Child]) -> syntax.Text:
        return self._node(syntax.Text, children, _unescape(children[0]))

    title = text

    def list_literal(self, children: list[Child]) -> syntax.ListLiteral:
        return self._node(syntax.ListLiteral, children, tuple(_only(syntax.Node, children)))

    def bracketed(self, children: list[Child]) -> syntax.Expression:
        opening, expression, closing = children
        span = Span(opening.span.start, closing.span.end)
        bracketed: syntax.Expression = replace(expression, span=span)
        return bracketed

    # Paths and calls

    def variable(self, children: list[Child]) -> syntax.Name:
        return self._node(syntax.Name, children, children[0].text)

    def list_name(self, children: list[Child]) -> syntax.ListName:
        return self._node(syntax.ListName, children, children[0].text[1:])

    def attribute(self, children: list[Child]) -> syntax.Attribute:
        base, _, member = children
        name = self._node(syntax.Identifier, [member], member.text)
        return self._node(syntax.Attribute, children, base, name)

    def subscript(self, children: list[Child]) -> syntax.Subscript:
        base, *keys = _only(syntax.Node, children)
        return self._node(syntax.Subscript, children, base, tuple(keys))

    def call(self, children: list[Child]) -> syntax.Call:
        name, *arguments = _only(syntax.Node, children)
        by = _clause(children, "BY")
        over = _clause(children, "OVER")
        half_life = _clause(children, "HALF")
        where = _clause(children, "WHERE")
        of = _clause(children, "OF")
        earlier = _clause(children, "EARLIER")
        return self._node(
            syntax.Call,
            [children[0], *arguments, *of, *by, *over, *half_life, *where, children[-1]],
            name,
            tuple(arguments),
            tuple(by),
            _optional(over),
            _optional(where),
            _optional(earlier),
            _optional(of),
            _optional(half_life),
        )

    def by(self, children: list[Child]) -> _Clause:
        return _Clause(children)

    over = half_life = where = every = of = beyond = absent = by

    def earlier(self, children: list[Child]) -> _Clause:
        return _Clause([*children, self.name(children)])


class _Clause(list[Child]):
    """A `by …` or `over …` clause, until it becomes part of its node."""

    @property
    def span(self) -> Span:
        return Span(self[0].span.start, self[-1].span.end)


def _only(kind: type[NodeT], children: Iterable[Child]) -> Iterable[NodeT]:
    return (child for child in children if isinstance(child, kind))


def _clause(children: list[Child], keyword: str) -> list[syntax.Node]:
    """Return the nodes of one clause among the children; none if it was left out."""
    return [
        node
        for child in children
        if isinstance(child, _Clause) and child[0].kind == keyword
        for node in _only(syntax.Node, child)
    ]


def _optional(children: list[Child]) -> Child | None:
    return children[0] if children else None


def _unescape(token: Piece) -> str:
    def character(escape: re.Match[str]) -> str:
        code, plain = escape.groups()
        point = int(code, 16) if code else 0
        if code and 0 < point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
            return chr(point)
        if plain in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[plain]
        start = token.span.start + 1 + escape.start()
        raise RefusedError(syntax_errors.bad_escape(Span(start, start + len(escape[0])), escape[0]))

    return _ESCAPE.sub(character, token.text[1:-1])
