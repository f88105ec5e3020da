"""Encode checked expressions as formulas over one payment, with variables only for what they read.

Every formula is exact or allows more than the interpreter does: if no assignment satisfies it, no
payment does. Where it allows more (`Opaque`: doubles, `entropy`, `lower`, …), `search.py` corrects
assignments by the engine's own functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from tollkeeper.engine.offline.prove.calls import encode_call
from tollkeeper.engine.offline.prove.comparisons import (
    encode_comparison,
    is_in_networks,
    is_one_of,
)
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.folds import FoldPart, encode_fold
from tollkeeper.engine.offline.prove.lookups import encode_column, is_on_list
from tollkeeper.engine.offline.prove.numbers import encode_arithmetic, encode_share
from tollkeeper.engine.offline.prove.payment import TRANSACTIONS
from tollkeeper.engine.offline.prove.regexes import found_in
from tollkeeper.engine.offline.prove.terms import (
    FALSE_TERM,
    TRUE_TERM,
    Formula,
    SmtTerm,
    UnsayableError,
    all_of,
    constant_term,
    logical_and,
    logical_or,
    sort_of,
)
from tollkeeper.engine.offline.prove.texts import TEXT_TESTS, encode_text
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.walk import children, resolve_let

_BOOLEAN = t.Boolean()
_ALWAYS = SmtTerm(TRUE_TERM, TRUE_TERM, _BOOLEAN)


class EncodedProgram:
    """A program's expressions as formulas; `element` is the index of a transaction."""

    def __init__(self, encoder: Encoder, lets: Sequence[p.Let]) -> None:
        self.encoder = encoder
        self.lets = lets
        self.digests = Digests(lets)
        self._known: dict[tuple[str, int | None], SmtTerm] = {}

    def term(self, node: p.Expression, element: int | None = None) -> SmtTerm:
        """Raises `UnsayableError`."""
        key = (self.digests.of(node), element)
        if key not in self._known:
            self._known[key] = self._read(node, element)
        return self._known[key]

    def _read(self, node: p.Expression, element: int | None) -> SmtTerm:
        """Encode a name, a constant or an aggregate."""
        source = self.encoder.source
        match node:
            case p.Constant():
                return SmtTerm(TRUE_TERM, constant_term(node.value, node.type), node.type)
            case p.LetValue():
                return self._let_value(node, element)
            case p.Score():
                return self.encoder.asked_score(node.type)
            case p.Fact():
                return source.fact(self.encoder, node)
            case p.HeaderFact():
                return source.header(self.encoder, node.side, node.name)
            case p.MetadataFact(inner=()):
                return source.metadata(self.encoder, node)
            case p.MetadataFact():
                raise UnsayableError("an entry within an entry of metadata")
            case p.ElementFact():
                if element is None:
                    raise UnsayableError("a transaction's field outside of an aggregate")
                return source.element(self.encoder, node.path, element)
            case p.DecisionFact() | p.LabelFact():
                # The payment being decided has no decision and no label yet.
                return SmtTerm(FALSE_TERM, z3.Const("undecided", sort_of(node.type)), node.type)
            case p.History():
                return self._history(node)
            case p.TableValue():
                key = self.term(node.key, element)
                of = f"{self.digests.of(node.key)}:{element}"
                return encode_column(self.encoder, node, key, f"@{node.table}.{node.column}[{of}]")
            case _:
                return self._compose(node, element)

    def _let_value(self, node: p.LetValue, element: int | None) -> SmtTerm:
        """Encode the lets that it builds on from the first one on: chains of them are long."""
        needed: set[int] = set()
        waiting: list[p.Expression] = [node]
        while waiting:
            match waiting.pop():
                case p.LetValue(index=index):
                    if index not in needed:
                        needed.add(index)
                        waiting.append(self.lets[index].value)
                case p.History(keys=keys):
                    waiting.extend(keys)
                case p.Fold():
                    pass
                case part:
                    waiting.extend(children(part))
        for index in sorted(needed):
            found = self.term(self.lets[index].value, element)
        return found

    def _compose(self, node: p.Expression, element: int | None) -> SmtTerm:
        """Encode an operator."""
        match node:
            case p.Not():
                operand = self.term(node.operand, element)
                return SmtTerm(operand.there, z3.Not(operand.value), _BOOLEAN)
            case p.And():
                return logical_and([self.term(each, element) for each in node.operands])
            case p.Or():
                return logical_or([self.term(each, element) for each in node.operands])
            case p.Compare():
                return self._compare(node, element)
            case p.Between():
                low, value, high = (
                    self.term(each, element) for each in (node.low, node.value, node.high)
                )
                above = encode_comparison(self.encoder, "<=", low, value)
                return logical_and([above, encode_comparison(self.encoder, "<=", value, high)])
            case p.Presence():
                there = self._present(node.operand, element)
                is_asked = there if node.state == "present" else z3.Not(there)
                return SmtTerm(TRUE_TERM, is_asked, _BOOLEAN)
            case p.OneOf() | p.InNetworks() | p.InList():
                value = self.term(node.value, element)
                found = self._is_among(node, value)
                return SmtTerm(value.there, z3.Not(found) if node.negated else found, _BOOLEAN)
            case p.TextTest():
                text, part = (
                    encode_text(self.term(each, element)) for each in (node.left, node.right)
                )
                found = TEXT_TESTS[node.operator](text.value, part.value)
                return SmtTerm(z3.And(text.there, part.there), found, _BOOLEAN)
            case p.Matches():
                text = encode_text(self.term(node.value, element))
                found = z3.InRe(text.value, found_in(node.pattern, node.ignore_case))
                return SmtTerm(text.there, found, _BOOLEAN)
            case p.Arithmetic():
                left, right = (self.term(each, element) for each in (node.left, node.right))
                return encode_arithmetic(self.encoder, node, left, right)
            case p.Negate():
                operand = self.term(node.operand, element)
                return SmtTerm(operand.there, -operand.value, node.type)
            case p.Call():
                given = [self.term(each, element) for each in node.arguments]
                return encode_call(self.encoder, node, given)
            case p.Fold():
                return self._fold(node)
            case p.InEntry() | p.EntryCount():
                raise UnsayableError("a list in metadata")
            case _:
                raise UnsayableError(f"{type(node).__name__}")

    def _present(self, node: p.Expression, element: int | None) -> Formula:
        if isinstance(node.type, t.Collection):
            return self.encoder.source.transactions(self.encoder) > 0
        return self.term(node, element).there

    def _is_among(self, node: p.OneOf | p.InNetworks | p.InList, value: SmtTerm) -> Formula:
        match node:
            case p.OneOf():
                return is_one_of(self.encoder, value, map(self.term, node.options))
            case p.InNetworks():
                return is_in_networks(value.value, node.networks)
            case p.InList():
                return is_on_list(self.encoder, node.list, value)

    def _compare(self, node: p.Compare, element: int | None) -> SmtTerm:
        quotient, bound = resolve_let(node.left, self.lets), resolve_let(node.right, self.lets)
        if isinstance(quotient, p.Arithmetic) and quotient.operator == "/":
            counts = [resolve_let(each, self.lets) for each in (quotient.left, quotient.right)]
            if isinstance(bound, p.Constant) and all(map(_is_count, counts)):
                dividend, divisor = (self.term(each, element) for each in counts)
                return encode_share(node.operator, dividend, divisor, bound)
        left, right = self.term(node.left, element), self.term(node.right, element)
        return encode_comparison(self.encoder, node.operator, left, right)

    def _fold(self, node: p.Fold) -> SmtTerm:
        count = self.encoder.source.transactions(self.encoder)
        parts = [
            FoldPart(
                count > index,
                _ALWAYS if node.where is None else self.term(node.where, index),
                None if node.value is None else self.term(node.value, index),
            )
            for index in range(TRANSACTIONS)
        ]
        return encode_fold(node, parts)

    def _history(self, node: p.History) -> SmtTerm:
        digest = self.digests.of(node)
        if digest not in self.encoder.histories:
            keys = all_of([self.term(each).there for each in node.keys])
            value = self.encoder.variable(f"history {digest}", node.type)
            if _is_count(node):
                self.encoder.assume(z3.And(value.value >= 0, value.value < 2**53))
            term = SmtTerm(z3.And(keys, value.there), value.value, node.type)
            self.encoder.histories[digest] = (node, term, self)
        return self.encoder.histories[digest][1]


def _is_count(node: p.Expression) -> bool:
    return isinstance(node, p.History) and node.function in ("count", "distinct")
