"""The time that a program takes at most for one payment or event, by prices that were measured.

Every text is taken to be as long as its field may be, and a payment to have as many attempts as it
may. What is written several times is computed once (engine/programs/compile/sharing.py), but
within an aggregate over attempts all that reads an attempt is computed for each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.checker.scope import Work
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.regexes import compile_regex
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.grammar.walk import children, parts, statements

MAX_COST: Final = 10_000_000
"""What a program may take, in nanoseconds, as all that follows."""

_STEP = 60
_HEADER = 8_000
_METADATA = 1_700
_LOOK_UP = 1_500
_PROBE = 250
_TEXT_AMONG = 2_000
_NUMBER_AMONG = 20_000
_SET_OF_TEXTS = 1_000_000
_SET_OF_NUMBERS = 6_000_000
"""Where metadata are one list, each number in it is read; all but short lists are made sets once."""
_OTHER_CALL = 300
_PATTERN = 1_500
_CALLS = {"ip_network": 13_000, "number": 2_000, "hour": 1_500, "weekday": 1_500}
_RECORD = 1_200
_WINDOW = 8_000
_ALL_OF_HISTORY = 20_000

_OF_A_CHARACTER = {"entropy": 160, "lower": 130, "upper": 130, "email_domain": 150}
_CHARACTER_FOUND = 12
_CHARACTER_READ = 1
_CHARACTER_OF_WORDS = 3
_CHARACTER_OF_PATTERN = 7
"""For each character of a text in which words are looked for; where a pattern is more than words,
for each of its instructions, all of which RE2 may have to follow."""
_WORDS = re.compile(r"(?:\\[^\w]|[\w\s\-/;:,'\"@=#%&!~<>|()^$])*")
_MOST_OF_WORDS = 400
"""Words of more instructions may have more states than RE2 keeps."""

_LONGEST_ENTRY = 256
_LONGEST_NETWORK = 49
_ADDRESS_BITS = 128

_Stage: TypeAlias = Literal["decide", "read", "count"]
"""Which function computes a part; nothing is shared between them."""


class _Part(NamedTuple):
    """An expression, computed so many times. `place` is what errors point to, None for itself."""

    node: p.Expression
    times: int
    stage: _Stage
    place: Span | None


def too_costly(work: Work, program: p.Program) -> Iterator[Diagnostic]:
    """The error of a program that takes more than it may; definitions count where they are used."""
    if isinstance(program, p.Definitions):
        return
    cost = program_cost(program, work.numbers, work.vocabulary)
    if cost.total > MAX_COST and cost.dearest is not None:
        noun = "payment" if work.fields is None else "event"
        yield say.too_costly(cost.dearest, noun, cost.total, cost.own, MAX_COST)


def program_cost(
    program: p.Rule | p.Scorecard | p.EventType, numbers: Numbers, vocabulary: Vocabulary
) -> Cost:
    """What a program costs; `numbers` are those of its expressions."""
    looked_up = {table.name: table.by for table in program.tables}
    cost = Cost(program.lets, looked_up, numbers, vocabulary)
    for root in _roots(program):
        cost.spend(root)
    return cost


def _roots(program: p.Rule | p.Scorecard | p.EventType) -> Iterator[p.Expression]:
    """What is computed for each payment or event."""
    yield from statements(program)
    if isinstance(program, p.EventType):
        yield from (each for monitor in program.monitors for each in monitor.by)


@dataclass(slots=True)
class Cost:
    """All that was spent; of it `counted` for counting what history is asked for, and `own` for the
    part at `dearest` alone."""

    lets: Sequence[p.Let]
    looked_up: Mapping[str, Literal["value", "prefix", "network"]]
    numbers: Numbers
    vocabulary: Vocabulary
    total: int = 0
    counted: int = 0
    own: int = 0
    dearest: Span | None = None
    _spent: set[tuple[_Stage, int]] = field(default_factory=set)
    _sets: set[bool] = field(default_factory=set)
    _lengths: dict[int, int] = field(default_factory=dict)
    _of_lets: list[int] = field(default_factory=list)

    def spend(self, root: p.Expression) -> None:
        """Adds what an expression costs beyond what is computed anyway."""
        waiting = [_Part(root, 1, "decide", None)]
        while waiting:
            part = self._resolve(waiting.pop())
            node = part.node
            if isinstance(node, p.Constant):
                continue
            if part.times == 1:
                known = part.stage, self.numbers.of(node)
                if known in self._spent:
                    self.total += _STEP
                    continue
                self._spent.add(known)
            own = self._price(node) * part.times + self._price_of_set(node)
            self.total += own
            if part.stage == "count":
                self.counted += own
            if own > self.own:
                self.own, self.dearest = own, part.place or node.span
            waiting += self._inner(part)

    def _resolve(self, part: _Part) -> _Part:
        """What a let holds, which is computed once; its text may be another file's."""
        node, _, stage, place = part
        if not isinstance(node, p.LetValue):
            return part
        while isinstance(node, p.LetValue):
            let = self.lets[node.index]
            if let.source is not None:
                place = place or node.span
            node = let.value
        return _Part(node, 1, stage, place)

    def _inner(self, part: _Part) -> Iterator[_Part]:
        """The parts that are computed with a part."""
        node = part.node
        match node:
            case p.History():
                yield from (part._replace(node=each, stage="read") for each in node.keys)
                yield from self._counted(node.series, part.place or node.span)
            case p.Fold():
                attempts = part._replace(times=self._attempts())
                yield from (_once_or_each(attempts, each) for each in children(node))
            case _:
                yield from (_once_or_each(part, each) for each in children(node))

    def _counted(self, series: p.Series, place: Span) -> Iterator[_Part]:
        """The parts that are computed to count a payment, and what keeping its records costs."""
        known: tuple[_Stage, int] = "count", self.numbers.of(series)
        if known in self._spent:
            return
        self._spent.add(known)
        times = self._attempts() if series.collection == "transactions" else 1
        self.total += _RECORD * times
        self.counted += _RECORD * times
        part = _Part(p.Score(0, place, t.Number(2)), 1, "count", place)
        yield from (part._replace(node=each) for each in series.by)
        records = part._replace(times=times)
        inner = [each for each in (series.where, series.value) if each is not None]
        yield from (_once_or_each(records, each) for each in inner)

    def _attempts(self) -> int:
        return self.vocabulary.payment["transactions"].longest

    def _price(self, node: p.Expression) -> int:
        """What an expression costs without its parts."""
        match node:
            case p.HeaderFact():
                return _HEADER
            case p.MetadataFact():
                return _METADATA
            case p.TableValue():
                return _LOOK_UP + _PROBE * self._probes(node)
            case p.InList():
                is_address = isinstance(node.value.type, t.Ip)
                return _LOOK_UP + _PROBE * (_ADDRESS_BITS if is_address else 1)
            case p.InEntry():
                return _NUMBER_AMONG if isinstance(node.value.type, t.Number) else _TEXT_AMONG
            case p.InNetworks():
                return _STEP * len({bits for _, bits in node.networks})
            case p.Compare() | p.OneOf():
                of = node.left if isinstance(node, p.Compare) else node.value
                return _STEP + self.length(of) * _CHARACTER_READ
            case p.TextTest(operator="contains"):
                return _STEP + self.length(node.left) * _CHARACTER_FOUND
            case p.TextTest():
                return _STEP + self.length(node.right) * _CHARACTER_READ
            case p.Matches():
                return _PATTERN + self.length(node.value) * _price_of_pattern(node)
            case p.Call():
                price = _OF_A_CHARACTER.get(node.function, _CHARACTER_READ)
                longest = max(map(self.length, node.arguments), default=0)
                return _CALLS.get(node.function, _OTHER_CALL) + longest * price
            case p.History():
                return _WINDOW if node.over is not None else _ALL_OF_HISTORY
            case _:
                return _STEP

    def _price_of_set(self, node: p.Expression) -> int:
        """What making sets of the lists in metadata costs, whatever is looked for in them: all
        lists together are no longer than one.
        """
        if not isinstance(node, p.InEntry):
            return 0
        of_numbers = isinstance(node.value.type, t.Number)
        if of_numbers in self._sets:
            return 0
        self._sets.add(of_numbers)
        return _SET_OF_NUMBERS if of_numbers else _SET_OF_TEXTS

    def _probes(self, node: p.TableValue) -> int:
        """How many lengths of prefixes, of texts or of networks, may be tried."""
        match self.looked_up[node.table]:
            case "prefix":
                return min(self.length(node.key), _LONGEST_ENTRY)
            case "network":
                return _ADDRESS_BITS
            case "value":
                return 1

    def length(self, node: p.Expression) -> int:
        """How many characters a text has at most; 0 for what is no text."""
        if not isinstance(node.type, t.String):
            return 0
        if isinstance(node, p.LetValue):
            # In the order written: a let uses only those above, so that no chain of them is deep.
            while len(self._of_lets) <= node.index:
                self._of_lets.append(self.length(self.lets[len(self._of_lets)].value))
            return self._of_lets[node.index]
        number = self.numbers.of(node)
        if number not in self._lengths:
            self._lengths[number] = self._longest(node)
        return self._lengths[number]

    def _longest(self, node: p.Expression) -> int:
        fields = self.vocabulary
        if isinstance(node.type, t.String) and node.type.choices is not None:
            return max(map(len, node.type.choices), default=0)
        match node:
            case p.Constant():
                return len(str(node.value))
            case p.Fact():
                return fields.payment[".".join(node.path)].longest
            case p.ElementFact():
                return fields.transaction[".".join(node.path)].longest
            case p.HeaderFact():
                return fields.payment[f"{node.side}.headers"].longest
            case p.MetadataFact():
                return fields.payment["metadata"].longest
            case p.EventFact():
                return t.LONGEST_EVENT_TEXT
            case p.Call(function="ip_network"):
                return _LONGEST_NETWORK
            case p.Call():
                return max(map(self.length, node.arguments), default=0)
            case _:
                return _LONGEST_ENTRY


def _once_or_each(part: _Part, inner: p.Expression) -> _Part:
    """A part of another: of one that is computed for each attempt, what reads no attempt is
    computed once."""
    varies = part.times > 1 and any(isinstance(each, p.ElementFact) for each in parts(inner))
    return part._replace(node=inner, times=part.times if varies else 1)


def _price_of_pattern(node: p.Matches) -> int:
    """What a pattern costs for each character of the text."""
    size = compile_regex(node.pattern, node.ignore_case).programsize
    if size <= _MOST_OF_WORDS and _WORDS.fullmatch(node.pattern):
        return _CHARACTER_OF_WORDS
    return _CHARACTER_OF_PATTERN * int(size)
