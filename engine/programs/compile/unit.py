"""A generated function under construction: its statements, and the names in it."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tollkeeper.engine.programs.compile import code, functions
from tollkeeper.engine.programs.compile.code import Code
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.sharing import SharedPart, kept_parts, operands
from tollkeeper.grammar import program as p
from tollkeeper.grammar.vocabulary import Field, Vocabulary
from tollkeeper.grammar.walk import resolve_let

PlainRead: TypeAlias = tuple[str | int, ...]
"""A read without computation: a parameter and a path of attributes, or `("h", index)`."""

MEMO = "m"
_ENTRY = "entry"
MOST_NESTED = 64
"""The deepest nesting of calls of kept parts; deeper ones (`deep`) are computed beforehand."""
_ALWAYS_THERE: frozenset[PlainRead] = frozenset({("p",), ("x",), ("h",), ("p", "payment")})
_BUILT_IN = {
    each.__name__: each for each in (abs, bisect_right, bool, len, max, min, set, str, type)
}
_FUNCTIONS = {
    name: value
    for name, value in vars(functions).items()
    if callable(value) and getattr(value, "__module__", None) == functions.__name__
}


@dataclass(slots=True)
class Module:
    """The functions generated for one program, and their shared state."""

    parameters: tuple[str, ...]
    lets: Sequence[p.Let]
    vocabulary: Vocabulary
    digests: Digests
    histories: dict[str, int]
    kept: dict[str, SharedPart]
    deep: tuple[str, ...]
    names: dict[str, Any] = field(default_factory=lambda: {**_BUILT_IN, **_FUNCTIONS})
    functions: list[ast.stmt] = field(default_factory=list)
    routines: dict[str, str] = field(default_factory=dict)
    waiting: list[tuple[str, p.Expression]] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    early: dict[str, ast.Assign] = field(default_factory=dict)
    counter: int = 0

    def fresh(self, hint: str) -> str:
        """An unused name."""
        self.counter += 1
        return f"{hint}_{self.counter}"

    def global_name(self, hint: str, value: Any) -> ast.expr:
        """A name for an object that generated functions use."""
        identifier = self.fresh(hint)
        self.names[identifier] = value
        return code.name(identifier)

    def slot(self, digest: str) -> int:
        """The index of a kept part's value in the memo."""
        return self.slots.setdefault(digest, len(self.slots))

    def routine(self, digest: str, node: p.Expression) -> ast.expr:
        """A call of a part's own function; the function is written later."""
        if digest not in self.routines:
            self.routines[digest] = self.fresh("part")
            self.waiting.append((digest, node))
        arguments = [code.name(each) for each in (*self.parameters, MEMO)]
        return code.call(self.routines[digest], *arguments)

    def start(self) -> list[ast.stmt]:
        """The statement that creates the memo, if anything uses it."""
        if not (self.routines or self.slots):
            return []
        empty = ast.List([code.constant(...)], ast.Load())
        count = code.constant(max(len(self.slots), 1))
        return [code.assign(MEMO, ast.BinOp(empty, ast.Mult(), count))]

    def define(self, entry: str) -> Callable[..., Any]:
        return code.define(self.functions, entry, self.names)


def module(
    parameters: tuple[str, ...],
    roots: Iterable[p.Expression],
    digests: Digests,
    histories: Sequence[p.History],
    vocabulary: Vocabulary,
) -> Module:
    """A module for a program whose expressions are `roots`; `digests` are the program's own."""
    places: dict[str, int] = {}
    for index, history in enumerate(histories):
        places.setdefault(digests.of(history), index)
    kept = kept_parts(roots, digests.lets, digests)
    deep = tuple(digest for digest, part in kept.items() if part.depth % MOST_NESTED == 0)
    return Module(parameters, digests.lets, vocabulary, digests, places, kept, deep)


@dataclass(slots=True)
class Unit:
    """One function; `own` is the digest of the kept part that it computes.

    `reads` counts how often each plain read is used: one that is used twice gets a name before the
    statement that first needs it. `bound` are the names so far. In the body of a loop over
    transactions, `outside` is the function around the loop.
    """

    module: Module
    reads: Counter[PlainRead]
    own: str | None = None
    outside: Unit | None = None
    body: list[ast.stmt] = field(default_factory=list)
    bound: dict[PlainRead | str, Code] = field(default_factory=dict)

    def fresh(self, hint: str) -> str:
        return self.module.fresh(hint)

    def require(self, value: Code) -> Code:
        """The value, with a test that it is not missing."""
        if not value.optional:
            return value
        if isinstance(value.result, ast.Name):
            return Code(value.result, (*value.needs, code.is_there(value.result)))
        local = self.fresh(_hint(value.result))
        bound = code.is_there(code.bind(local, value.result))
        return Code(code.name(local), (*value.needs, bound))

    def named(self, value: Code) -> Code:
        """The value, not missing, and as a name or constant that can be used twice."""
        value = self.require(value)
        if isinstance(value.result, (ast.Name, ast.Constant)):
            return value
        return self.require(Code(value.result, value.needs, optional=True))

    def assign(self, hint: str, value: Code) -> Code:
        """Assign the value to a new name, for the following statements."""
        local = self.fresh(hint)
        self.body.append(code.assign(local, value.expression()))
        return Code(code.name(local), (), optional=bool(value.needs) or value.optional)

    def read(self, read: PlainRead) -> Code:
        """The value of a plain read."""
        if self.outside is not None and read[0] != "x":
            return self.outside.read(read)
        if read in self.bound:
            return self.bound[read]
        if len(read) == 1:
            return Code(code.name(str(read[0])), (), read not in _ALWAYS_THERE)
        owner = self.require(self.read(read[:-1]))
        last = read[-1]
        got = (
            code.attribute(owner.result, last)
            if isinstance(last, str)
            else code.item(owner.result, last)
        )
        value = Code(got, owner.needs, read not in _ALWAYS_THERE)
        if self.reads[read] > 1:
            value = self.bound[read] = self.assign(_hint(got), value)
        return value

    def field(self, root: str, fields: Mapping[str, Field], path: tuple[str, ...]) -> Code:
        return self.read((root, *fields[".".join(path)].access))


def _hint(result: ast.expr) -> str:
    match result:
        case ast.Attribute(attr=attr):
            return attr
        case ast.Subscript(value=ast.Name(id=identifier)):
            return identifier
        case _:
            return "v"


def reads_of(node: p.Expression, module: Module) -> list[PlainRead]:
    """The plain reads that the expression's own code contains."""
    fields = module.vocabulary
    match node:
        case p.Fact():
            return [("p", *fields.payment[".".join(node.path)].access)]
        case p.ElementFact():
            return [("x", *fields.transaction[".".join(node.path)].access)]
        case p.DecisionFact():
            return [("d", *fields.decision[node.name].access)]
        case p.LabelFact():
            return [("y",)]
        case p.Score():
            return [("s",)]
        case p.ArrivalFact():
            return [("p", "arrived")]
        case p.HeaderFact():
            return [("p", *fields.payment[f"{node.side}.headers"].access)]
        case p.MetadataFact():
            return [("p", *fields.payment["metadata"].access)]
        case p.Call(function="amount_in"):
            return [("p", *fields.payment[name].access) for name in ("amount", "currency")]
        case p.InList() | p.TableValue():
            return [("p", "arrived")]
        case p.History():
            return [("h", module.histories[module.digests.of(node)])]
        case _:
            return []


def count_reads(
    roots: Iterable[p.Expression], module: Module, elsewhere: Container[str] = ()
) -> Counter[PlainRead]:
    """How often each plain read is used in a function of these expressions.

    A prefix of a read counts once for each read that continues it. The parts with the digests
    `elsewhere` have functions of their own.
    """
    counts: Counter[PlainRead] = Counter()
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        node = resolve_let(waiting.pop(), module.lets)
        digest = module.digests.of(node)
        if digest in seen:
            continue
        if digest in module.kept:
            seen.add(digest)
        for read in reads_of(node, module):
            counts[read] += 1
            while counts[read] == 1 and len(read) > 2:
                read = read[:-1]
                counts[read] += 1
        if not isinstance(node, p.Fold):
            inner = (each for each in operands(node) if module.digests.of(each) not in elsewhere)
            waiting.extend(inner)
    return counts


def finish_unit(unit: Unit, result: ast.expr) -> Callable[..., Any]:
    """Finish the function with `result` and compile it."""
    module = unit.module
    body = [*module.start(), *unit.body, ast.Return(result)]
    module.functions.append(code.function(_ENTRY, module.parameters, body))
    return module.define(_ENTRY)
