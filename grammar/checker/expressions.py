"""Check the types of expressions. An expression with an error has no value; the error is reported
once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import aggregates, calls, entries, literals, membership, names
from tollkeeper.grammar.checker.arithmetic import arithmetic, negate
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.regexes import MAX_SIZE, RegexError, compile_regex
from tollkeeper.grammar.walk import resolve_let
from tollkeeper.grammar.words import kind_of

_SCALARS = (t.Boolean, t.Number, t.String, t.Ip, t.Instant, t.Duration)
_ORDERED = (t.Number, t.Instant, t.Duration)
_PLAIN = (
    p.Constant,
    p.Fact,
    p.HeaderFact,
    p.MetadataFact,
    p.ElementFact,
    p.DecisionFact,
    p.LabelFact,
    p.EventFact,
    p.TableValue,
)
_HEADER = re.compile(r"((?:payment\.)?(?:device|backend)\.headers)\.([A-Za-z][A-Za-z-]*)")
_LONGEST_HEADER = 100


def name_in(work: Work, scope: Scope, node: s.Expression) -> p.Expression | None:
    """Resolve a name, which may also be a group of fields or the metadata as a whole."""
    match node:
        case s.Attribute(base=s.Subscript(base=s.ListName())):
            return entries.column(work, scope, node, value_for)
        case s.Name() | s.Attribute():
            return names.resolve(work, scope, node)
        case s.Subscript():
            return entries.entry(work, scope, node, value_for)
        case _:
            return value(work, scope, node)


def value(work: Work, scope: Scope, node: s.Expression) -> p.Expression | None:  # noqa: C901
    """Check an expression as a single value; a metadata entry's type is still open."""
    match node:
        case s.Name() | s.Attribute() | s.Subscript():
            return _one_value(work, scope, name_in(work, scope, node))
        case s.Number() | s.Text() | s.Boolean() | s.Duration():
            return literals.read(work, node)
        case s.Or() | s.And():
            return _logic(work, scope, node)
        case s.Not():
            operand = condition(work, scope, node.operand)
            return None if operand is None else p.Not(node.id, node.span, t.Boolean(), operand)
        case s.Compare():
            return _compare(work, scope, node)
        case s.Between():
            return _check_between(work, scope, node)
        case s.Membership():
            return membership.membership(work, scope, node, value_for)
        case s.TextTest():
            return _text_test(work, scope, node)
        case s.Matches():
            return _matches(work, scope, node)
        case s.Presence():
            operand = name_in(work, scope, node.operand)
            if operand is None:
                return None
            return p.Presence(node.id, node.span, t.Boolean(), operand, node.state)
        case s.Negate() if literals.is_literal(node):
            return literals.read(work, node)
        case s.Negate():
            return negate(work, node, _term(work, scope, node.operand))
        case s.Arithmetic():
            return _arithmetic(work, scope, node)
        case s.Call():
            if aggregates.is_aggregate(node):
                return aggregates.aggregate(work, scope, node, value_for)
            return calls.call(work, scope, node, value_for)
        case s.ListName():
            work.names_read.add(f"@{node.name}")
            work.report(say.list_alone(node.span, node.name))
            return None
        case s.ListLiteral():
            work.report(say.list_literal_alone(node.span))
            return None
        case s.Regex():
            raise AssertionError("the grammar takes a regular expression after `matches` only")


def value_for(
    work: Work, scope: Scope, node: s.Expression, wanted: t.Type | None
) -> p.Expression | None:
    """Check an expression that should be of type `wanted`: literals and metadata take that type.

    A value of another type is returned unchanged; the caller reports it.
    """
    if wanted is not None and literals.is_literal(node):
        plain = literals.read(work, node)
        if plain is None or not isinstance(plain.type, t.String):
            return plain
        return literals.read_as(work, node, wanted, "") if _takes_text(wanted) else plain
    found = value(work, scope, node)
    return found if found is None or wanted is None else settle_metadata(work, found, wanted)


def _takes_text(wanted: t.Type) -> bool:
    return isinstance(wanted, t.String | t.Ip | t.Instant)


def settle_metadata(work: Work, node: p.Expression, wanted: t.Type) -> p.Expression | None:
    """Give a metadata entry the type of its use; other expressions are unchanged."""
    if not isinstance(node, p.MetadataFact) or not isinstance(node.type, t.Metadata):
        return node
    match wanted:
        case t.Number():
            return replace(node, type=names.METADATA_NUMBER)
        case t.String():
            return replace(node, type=t.String())
        case t.Boolean():
            return replace(node, type=t.Boolean())
        case _:
            work.report(say.metadata_kind(node.span, kind_of(wanted)))
            return None


def condition(work: Work, scope: Scope, node: s.Expression) -> p.Expression | None:
    """Check an expression as a boolean."""
    found = value_for(work, scope, node, t.Boolean())
    if found is None or isinstance(found.type, t.Boolean):
        return found
    work.report(say.not_a_condition(found.span, kind_of(found.type)))
    return None


def _one_value(work: Work, scope: Scope, found: p.Expression | None) -> p.Expression | None:
    if found is None or isinstance(found.type, _SCALARS):
        return found
    if isinstance(found, p.MetadataFact):
        return found
    fields = names.fields_within(work, found.path) if isinstance(found, p.Fact) else []
    if isinstance(found.type, t.Record) and fields:
        work.report(say.group_alone(found.span, fields, is_key=scope.part == "by"))
    else:
        work.report(say.not_a_value(found.span, kind_of(found.type)))
    return None


def _logic(work: Work, scope: Scope, node: s.Or | s.And) -> p.Expression | None:
    told: set[int] = set()
    for at, end, correction in _compared_once(work, node):
        span = s.Span(_first(node.operands[at]).span.start, node.operands[end - 1].span.end)
        work.report(say.alternative_texts(span, correction))
        told.update(range(at, end))
    found = [
        condition(work, scope, operand)
        for at, operand in enumerate(node.operands)
        if at not in told
    ]
    operands = tuple(operand for operand in found if operand is not None)
    if len(operands) < len(node.operands):
        return None
    kind = p.Or if isinstance(node, s.Or) else p.And
    return kind(node.id, node.span, t.Boolean(), operands)


def _compared_once(work: Work, node: s.Or | s.And) -> Iterator[tuple[int, int, str]]:
    """Find `a == "x" or "y"`, where what is compared stands before the first value alone: from which
    operand, up to which, and what was meant.
    """
    plain = [isinstance(operand, s.Text | s.Number) for operand in node.operands]
    for at, operand in enumerate(node.operands):
        if plain[at]:
            continue
        others = list(takewhile(lambda place: plain[place], range(at + 1, len(plain))))
        if not others:
            continue
        texts = [work.text(node.operands[place].span) for place in others]
        correction = _correction(work, _first(operand), texts, is_or=isinstance(node, s.Or))
        if correction is not None:
            yield at, others[-1] + 1, correction


def _first(operand: s.Expression) -> s.Expression:
    """What an operand of `or` compares last."""
    return operand.operands[-1] if isinstance(operand, s.And) else operand


def _correction(work: Work, first: s.Expression, others: list[str], *, is_or: bool) -> str | None:
    match first:
        case s.Compare(operator="==", left=left, right=s.Text() | s.Number() as value) if is_or:
            return f"{work.text(left.span)} in [{', '.join([work.text(value.span), *others])}]"
        case s.Compare(operator="!=", left=left, right=s.Text() | s.Number() as value):
            return f"{work.text(left.span)} not in [{', '.join([work.text(value.span), *others])}]"
        case s.TextTest(left=left, right=s.Text() as value):
            start = work.text(s.Span(left.span.start, value.span.start))
            tests = [f"{start}{each}" for each in (work.text(value.span), *others)]
            return f"({' or '.join(tests)})" if is_or else " and ".join(tests)
        case _:
            return None


def _compare(work: Work, scope: Scope, node: s.Compare) -> p.Expression | None:
    match node:
        case s.Compare(left=s.Name(text="transactions") as counted, right=s.Number()):
            work.report(say.uncounted(counted.span, counted.text))
            return None
    if scope.collection is None and _is_of_elements(work, node.left):
        written = work.text(node.span).removeprefix("transactions.")
        work.report(say.compared_collection(node.span, "transactions", written))
        return None
    sides = _pair(work, scope, node.left, node.right)
    if sides is None:
        return None
    left, right = sides
    if not _comparable(work, node.span, left, right):
        return None
    if node.operator not in ("==", "!=") and not isinstance(left.type, _ORDERED):
        work.report(say.no_order(node.span, node.operator, kind_of(left.type)))
        return None
    if isinstance(left.type, t.Boolean) and not (_plain(work, left) and _plain(work, right)):
        work.report(say.boolean_comparison(node.span))
        return None
    return p.Compare(node.id, node.span, t.Boolean(), node.operator, left, right)


def _is_of_elements(work: Work, node: s.Expression) -> bool:
    """Whether a path names a field of the transactions, of which a payment has several."""
    base, path = names.flatten(node)
    if not isinstance(base, s.Name) or base.text != "transactions" or not path:
        return False
    return (
        work.fields is None and ".".join(each.text for each in path) in work.vocabulary.transaction
    )


def _plain(work: Work, node: p.Expression) -> bool:
    return isinstance(resolve_let(node, work.lets), _PLAIN)


def _comparable(work: Work, span: s.Span, left: p.Expression, right: p.Expression) -> bool:
    if type(left.type) is type(right.type):
        return True
    names_of = (work.text(left.span), work.text(right.span))
    work.report(say.mismatch(span, names_of, (kind_of(left.type), kind_of(right.type))))
    return False


def _pair(
    work: Work, scope: Scope, left: s.Expression, right: s.Expression
) -> tuple[p.Expression, p.Expression] | None:
    """Check two values that are compared: a literal or a metadata entry takes the other's type."""
    if literals.is_literal(left) and not literals.is_literal(right):
        flipped = _pair(work, scope, right, left)
        return None if flipped is None else (flipped[1], flipped[0])
    first = value(work, scope, left)
    if first is not None and isinstance(first.type, t.String):
        if names.is_unknown(work, scope, right):
            choices = first.type.choices or ()
            work.report(say.unquoted_text(right.span, work.text(right.span), choices))
            return None
        if isinstance(right, s.Or) and all(map(literals.is_literal, right.operands)):
            correction = ", ".join(work.text(each.span) for each in right.operands)
            between = work.text(s.Span(left.span.end, right.span.start))
            operator = "in" if "==" in between else "not in"
            span = s.Span(left.span.end, right.span.end)
            work.report(say.alternative_texts(span, f" {operator} [{correction}]"))
            return None
    second = (
        literals.meeting(work, right, first)
        if literals.is_literal(right)
        else value(work, scope, right)
    )
    if first is None or second is None:
        return None
    if isinstance(first.type, t.Metadata) and isinstance(second.type, t.Metadata):
        work.report(say.two_metadata(s.Span(first.span.start, second.span.end)))
        return None
    settled_first = settle_metadata(work, first, second.type)
    settled_second = settle_metadata(work, second, first.type)
    if settled_first is None or settled_second is None:
        return None
    if isinstance(first.type, t.Metadata) and not literals.in_range(
        work, right, second, settled_first
    ):
        return None
    return settled_first, settled_second


def _check_between(work: Work, scope: Scope, node: s.Between) -> p.Expression | None:
    low_sides = _pair(work, scope, node.value, node.low)
    if low_sides is None:
        return None
    subject, low = low_sides
    high = (
        literals.meeting(work, node.high, subject)
        if literals.is_literal(node.high)
        else value_for(work, scope, node.high, subject.type)
    )
    if high is None:
        return None
    for end in (low, high):
        if not _comparable(work, node.span, subject, end):
            return None
    if not isinstance(subject.type, _ORDERED):
        work.report(say.no_order(node.span, "between", kind_of(subject.type)))
        return None
    return p.Between(node.id, node.span, t.Boolean(), subject, low, high)


def _text(work: Work, scope: Scope, node: s.Expression, operator: str) -> p.Expression | None:
    found = value_for(work, scope, node, t.String())
    if found is None or isinstance(found.type, t.String):
        return found
    work.report(say.needs_text(found.span, operator, kind_of(found.type)))
    return None


def _text_test(work: Work, scope: Scope, node: s.TextTest) -> p.Expression | None:
    left = _text(work, scope, node.left, node.operator)
    right = _text(work, scope, node.right, node.operator)
    if left is None or right is None:
        return None
    return p.TextTest(node.id, node.span, t.Boolean(), node.operator, left, right)


def _matches(work: Work, scope: Scope, node: s.Matches) -> p.Expression | None:
    subject = _text(work, scope, node.value, "matches")
    assert isinstance(node.regex, s.Regex), "the grammar says so"
    if not _compiles(work, node.regex):
        return None
    if subject is None:
        return None
    return p.Matches(
        node.id, node.span, t.Boolean(), subject, node.regex.pattern, node.regex.ignore_case
    )


def _compiles(work: Work, regex: s.Regex) -> bool:
    """Whether the pattern is valid and the file's patterns stay within their bound; past it, none
    is compiled.
    """
    if work.patterns_size > MAX_SIZE:
        return False
    pattern = regex.pattern, regex.ignore_case
    try:
        compiled = compile_regex(*pattern)
    except RegexError as problem:
        work.report(say.bad_regex(regex.span, str(problem)))
        return False
    if pattern not in work.patterns:
        work.patterns.add(pattern)
        work.patterns_size += compiled.programsize
    if work.patterns_size > MAX_SIZE:
        work.report(say.regexes_too_large(regex.span))
        return False
    return True


def _arithmetic(work: Work, scope: Scope, node: s.Arithmetic) -> p.Expression | None:
    is_short = node.span.end - node.span.start <= _LONGEST_HEADER
    if is_short and (header := _HEADER.fullmatch(work.text(node.span))):
        work.report(say.dotted_entry(node.span, header[1], header[2]))
        return None
    left = _term(work, scope, node.left)
    right = _term(work, scope, node.right)
    return arithmetic(work, node, left, right)


def _term(work: Work, scope: Scope, node: s.Expression) -> p.Expression | None:
    found = value(work, scope, node)
    return None if found is None else settle_metadata(work, found, t.Number(None))
