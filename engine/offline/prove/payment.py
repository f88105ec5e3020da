"""The payment of a proof: a variable for each requested field, constrained by the field rules.

Only payments that the API accepts are considered, so that no proof fails because of one that could
never arrive.
"""

from __future__ import annotations

import z3

from tollkeeper.engine.facts.vocabulary import RESPONSE_MEANING
from tollkeeper.engine.intake.addresses import PRIVATE_NETWORKS
from tollkeeper.engine.intake.codes import MEANINGS
from tollkeeper.engine.intake.payment import MAX_HEADER, MAX_TEXT
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.terms import (
    TRUE_TERM,
    Formula,
    SmtTerm,
    all_of,
    any_of,
)
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.vocabulary import Field, Vocabulary

TRANSACTIONS = 3
"""The most transactions of a payment in a proof."""
CARD_FINGERPRINT = ("method", "card", "fingerprint")
_MAY_BE_EMPTY = {("transactions", "connector", "type"), ("analyze", "rule", "name")}
_FINAL_WITH_ATTEMPTS = ("succeeded", "declined")
_WITH_CODE = ("succeeded", "declined")
_MAPPED = 0xFFFF << 32
_PRIVATE = tuple(
    (base + int(network.network_address), base + int(network.broadcast_address))
    for network in PRIVATE_NETWORKS
    for base in (_MAPPED if network.version == 4 else 0,)
)
_KINDS_OF_ENTRY: dict[type[t.Type], int] = {t.Boolean: 1, t.Number: 2, t.String: 3}
_OTHER_KIND = 4


class PaymentSource:
    """The variables: fields, headers, metadata entries, transactions' fields.

    Programs that are compared share them, as they decide the same payment.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.fields: dict[tuple[str, ...], SmtTerm] = {}
        self.headers: dict[tuple[str, str], SmtTerm] = {}
        self.entries: dict[str, Formula] = {}
        self.entry_values: dict[tuple[str, type[t.Type]], SmtTerm] = {}
        self.elements: dict[tuple[tuple[str, ...], int], SmtTerm] = {}
        self.count: Formula | None = None

    def fact(self, encoder: Encoder, node: p.Fact) -> SmtTerm:
        return self.field(encoder, ".".join(node.path))

    def field(self, encoder: Encoder, name: str) -> SmtTerm:
        path = tuple(name.split("."))
        if path not in self.fields:
            self.fields[path] = self._make_field(encoder, self.vocabulary.payment[name])
        return self.fields[path]

    def _make_field(self, encoder: Encoder, field: Field) -> SmtTerm:
        path = field.path
        if path == CARD_FINGERPRINT:
            return self._card_fingerprint(encoder)
        if isinstance(field.type, t.Collection):
            return SmtTerm(self.transactions(encoder) > 0, TRUE_TERM, field.type)
        parent = TRUE_TERM if len(path) == 1 else self.field(encoder, ".".join(path[:-1])).there
        there = parent if field.required else z3.And(parent, z3.Bool(f"{'.'.join(path)}?"))
        if isinstance(field.type, t.Record | t.Headers | t.Metadata):
            if path[-1] == "client":
                headers = self.field(encoder, f"{path[0]}.headers").there
                encoder.assume(z3.Implies(there, headers))
            return SmtTerm(there, TRUE_TERM, field.type)
        term = encoder.variable(".".join(path), field.type)
        self._obey(encoder, path, term)
        return SmtTerm(there, term.value, field.type)

    def _obey(self, encoder: Encoder, path: tuple[str, ...], term: SmtTerm) -> None:
        value = term.value
        match term.type:
            case t.String(choices=None) if path[-1] in ("bin", "last_four"):
                digits = 8 if path[-1] == "bin" else 4
                encoder.assume(z3.InRe(value, z3.Loop(z3.Range("0", "9"), digits, digits)))
            case t.String(choices=None):
                least = 0 if path in _MAY_BE_EMPTY else 1
                encoder.assume(z3.And(z3.Length(value) >= least, z3.Length(value) <= MAX_TEXT))
            case t.Ip():
                outside = [z3.Or(value < low, value > high) for low, high in _PRIVATE]
                encoder.assume(all_of([value >= 0, value < 2**128, *outside]))
            case _:
                pass

    def _card_fingerprint(self, encoder: Encoder) -> SmtTerm:
        bin_ = self.field(encoder, "method.card.bin")
        last_four = self.field(encoder, "method.card.last_four")
        value = z3.Concat(bin_.value, z3.StringVal("-"), last_four.value)
        return SmtTerm(z3.And(bin_.there, last_four.there), value, t.String())

    def header(self, encoder: Encoder, side: str, name: str) -> SmtTerm:
        if (side, name) not in self.headers:
            there = z3.Bool(f"{side}.headers[{name}]?")
            encoder.assume(z3.Implies(there, self.field(encoder, f"{side}.headers").there))
            value = z3.String(f"{side}.headers[{name}]")
            encoder.assume(z3.Length(value) <= MAX_HEADER)
            self.headers[side, name] = SmtTerm(there, value, t.String())
        return self.headers[side, name]

    def metadata(self, encoder: Encoder, node: p.MetadataFact) -> SmtTerm:
        """A metadata entry; it has one type, and is missing when read as another."""
        if node.key not in self.entries:
            kind = self.entries[node.key] = z3.Int(f"metadata[{node.key}] kind")
            encoder.assume(z3.And(kind >= 0, kind <= _OTHER_KIND))
            encoder.assume(z3.Implies(kind > 0, self.field(encoder, "metadata").there))
        kind = self.entries[node.key]
        if isinstance(node.type, t.Metadata):
            return SmtTerm(kind > 0, TRUE_TERM, node.type)
        of = type(node.type)
        if (node.key, of) not in self.entry_values:
            term = encoder.variable(f"metadata[{node.key}] {of.__name__}", node.type)
            if isinstance(node.type, t.Number):
                limit = t.METADATA_LIMIT * 10**t.METADATA_SCALE
                encoder.assume(z3.And(term.value >= -limit, term.value <= limit))
            self.entry_values[node.key, of] = term
        value = self.entry_values[node.key, of].value
        return SmtTerm(self.is_of_kind(kind, of), value, node.type)

    def is_of_kind(self, kind: Formula, of: type[t.Type]) -> Formula:
        """Whether an entry's kind fits the type."""
        return kind == _KINDS_OF_ENTRY[of]

    def transactions(self, encoder: Encoder) -> Formula:
        """How many transactions the payment has."""
        if self.count is None:
            self.count = z3.Int("transactions")
            encoder.assume(z3.And(self.count >= 0, self.count <= TRANSACTIONS))
            with_attempts = self._is_among(self.field(encoder, "status"), _FINAL_WITH_ATTEMPTS)
            encoder.assume(z3.Implies(with_attempts, self.count > 0))
        return self.count

    def element(self, encoder: Encoder, path: tuple[str, ...], index: int) -> SmtTerm:
        """A field of the transaction with this index; meaningful only below the number of
        transactions."""
        if path == RESPONSE_MEANING.path:
            return self._meaning(encoder, index)
        if (path, index) not in self.elements:
            field = self.vocabulary.transaction[".".join(path)]
            name = f"transactions[{index}].{'.'.join(path)}"
            required = field.required or path == ("timestamp",)
            parent = TRUE_TERM if len(path) == 1 else self.element(encoder, path[:-1], index).there
            there = parent if required else z3.And(parent, z3.Bool(f"{name}?"))
            if isinstance(field.type, t.Record):
                term = SmtTerm(there, TRUE_TERM, field.type)
            else:
                variable = encoder.variable(name, field.type)
                self._obey(encoder, ("transactions", *path), variable)
                term = SmtTerm(there, variable.value, field.type)
            self.elements[path, index] = term
            if path == ("connector", "response_code"):
                status = self.element(encoder, ("status",), index)
                encoder.assume(z3.Implies(self._is_among(status, _WITH_CODE), there))
        return self.elements[path, index]

    def _meaning(self, encoder: Encoder, index: int) -> SmtTerm:
        """What the response code of the transaction of that index says."""
        code = self.element(encoder, ("connector", "response_code"), index)
        known = RESPONSE_MEANING.type
        assert isinstance(known, t.String)
        assert known.choices is not None
        value = z3.IntVal(known.choices.index("other"))
        for each, meaning in MEANINGS.items():
            value = z3.If(code.value == each, known.choices.index(meaning), value)
        return SmtTerm(code.there, value, known)

    def _is_among(self, term: SmtTerm, choices: tuple[str, ...]) -> Formula:
        assert isinstance(term.type, t.String)
        known = term.type.choices or ()
        return any_of([term.value == known.index(each) for each in choices])
