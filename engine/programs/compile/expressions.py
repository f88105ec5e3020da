"""Compile checked expressions to Python: tests for *definitely true* and *definitely false*, and
values.

Each part is compiled once for each place where it is used, in the form that is needed there, so the
generated function grows linearly with the program.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TypeAlias, get_args

from tollkeeper.engine.programs.compile import code, numbers, predicates
from tollkeeper.engine.programs.compile.calls import call
from tollkeeper.engine.programs.compile.code import Code
from tollkeeper.engine.programs.compile.folds import Loop, fold
from tollkeeper.engine.programs.compile.sharing import leading
from tollkeeper.engine.programs.compile.unit import MEMO, Module, Unit, count_reads, reads_of
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.walk import resolve_let

_Test: TypeAlias = (
    p.Compare
    | p.Between
    | p.OneOf
    | p.InNetworks
    | p.InList
    | p.InEntry
    | p.TextTest
    | p.Matches
    | p.Presence
)
_TESTS = get_args(_Test)


def test(unit: Unit, node: p.Expression, wanted: bool) -> ast.expr:
    """Truthy where the boolean expression is definitely `wanted`; negation moves inwards."""
    node = resolve_let(node, unit.module.lets)
    kept = _recall(unit, node)
    if kept is None:
        match node:
            case p.Not():
                return test(unit, node.operand, not wanted)
            case p.And() | p.Or():
                join = code.both if isinstance(node, p.And) is wanted else code.either
                return join([test(unit, operand, wanted) for operand in node.operands])
            case p.Compare(operator="==" | "!=") if wanted is (node.operator == "=="):
                return _equal(unit, node).test()
            case p.OneOf() if wanted is not node.negated:
                affirmed = replace(node, negated=False)
                return predicates.one_of(affirmed, value(unit, node.value)).test()
            case p.Between() if _has_open_end(unit, node):
                return test(unit, _as_comparisons(node), wanted)
    found = value(unit, node) if kept is None else kept
    if wanted:
        return found.test()
    if found.optional or _is_value(node):
        return code.both((*found.needs, code.compare_code("is", found.result, code.FALSE)))
    return code.both((*found.needs, code.opposite(found.result)))


def value(unit: Unit, node: p.Expression) -> Code:
    """The expression's value, represented as `types.py` says."""
    node = resolve_let(node, unit.module.lets)
    kept = _recall(unit, node)
    return _compute(unit, node) if kept is None else kept


def statements(unit: Unit, node: p.Expression) -> None:
    """Write, before a statement that begins with `node`, those kept parts that it certainly needs."""
    module = unit.module
    for digest in module.deep:
        _keep(unit, digest, module.kept[digest].node)
    for each in reversed(list(leading(node, module.lets))):
        digest = module.digests.of(each)
        if digest in module.kept:
            _keep(unit, digest, each)


def write_routines(module: Module) -> None:
    """Write the functions of the kept parts and folds that have been called so far.

    This is done after each statement, so that a function reads directly only those `early` values
    that had been computed when it was first called.
    """
    while module.waiting:
        digest, node = module.waiting.pop()
        unit = Unit(module, count_reads(_inner_parts(node), module, module.kept), own=digest)
        result = _loop(unit, node) if isinstance(node, p.Fold) else value(unit, node)
        if digest in module.kept:
            kept = unit.assign("kept", result)
            target = code.assign_name(MEMO, module.slot(digest))
            unit.body.append(ast.Assign([target], kept.result))
            result = kept
        unit.body.append(ast.Return(result.expression()))
        parameters = (*module.parameters, MEMO)
        module.functions.append(code.function(module.routines[digest], parameters, unit.body))


def _inner_parts(node: p.Expression) -> list[p.Expression]:
    if isinstance(node, p.Fold):
        return [part for part in (node.value, node.where) if part is not None]
    return [node]


# Kept parts


def _recall(unit: Unit, node: p.Expression) -> Code | None:
    """The value of a kept part; None for a part that is computed in place."""
    module = unit.module
    digest = module.digests.of(node)
    if digest in unit.bound:
        return unit.bound[digest]
    if digest not in module.kept or digest == unit.own:
        return None
    early = module.early.get(digest)
    if early is not None:
        if len(early.targets) == 1:
            early.targets.append(code.assign_name(MEMO, module.slot(digest)))
        return Code(code.item(code.name(MEMO), module.slot(digest)), (), optional=True)
    local = unit.fresh("v")
    kept = code.bind(local, code.item(code.name(MEMO), module.slot(digest)))
    is_known = code.compare_code("is not", kept, code.constant(...))
    worked_out = module.routine(digest, node)
    return Code(code.either_value(is_known, code.name(local), worked_out), (), optional=True)


def _keep(unit: Unit, digest: str, node: p.Expression) -> None:
    """Compute a kept part here, and name it for all following statements."""
    if digest in unit.bound:
        return
    if digest in unit.module.routines:
        unit.bound[digest] = unit.assign("kept", value(unit, node))
        write_routines(unit.module)
        return
    unit.bound[digest] = unit.assign("kept", _compute(unit, node))
    statement = unit.body[-1]
    assert isinstance(statement, ast.Assign)
    write_routines(unit.module)
    unit.module.early[digest] = statement


# Expressions


def _is_value(node: p.Expression) -> bool:
    """Whether a boolean is a value that may be True, False or None, and not a test."""
    return not isinstance(node, _TESTS)


def _compute(unit: Unit, node: p.Expression) -> Code:
    match node:
        case p.Constant():
            return Code(code.constant(node.value))
        case p.Not() | p.And() | p.Or():
            return _logic(unit, node)
        case _ if isinstance(node, _TESTS):
            return _test_code(unit, node)
        case p.Arithmetic():
            left, right = value(unit, node.left), value(unit, node.right)
            return numbers.arithmetic(unit, node, left, right)
        case p.Negate():
            return numbers.negate(unit, value(unit, node.operand))
        case p.Curve():
            return numbers.curve(unit, node, value(unit, node.value))
        case p.Call():
            return call(unit, node, [value(unit, argument) for argument in node.arguments])
        case p.EntryCount():
            return predicates.entry_count(unit, value(unit, node.entry))
        case p.Fold():
            result = unit.module.routine(unit.module.digests.of(node), node)
            return Code(result, (), optional=node.function not in ("count", "distinct"))
        case _:
            return _read(unit, node)


def _test_code(unit: Unit, node: _Test) -> Code:
    match node:
        case p.Compare():
            left, right = value(unit, node.left), value(unit, node.right)
            return predicates.compare(unit, node, unit.require(left), unit.require(right))
        case p.Between() if _has_open_end(unit, node):
            return _logic(unit, _as_comparisons(node))
        case p.Between():
            low, high = value(unit, node.low), value(unit, node.high)
            return predicates.between_constants(
                unit, node, unit.require(value(unit, node.value)), low, high
            )
        case p.OneOf():
            return predicates.one_of(node, unit.require(value(unit, node.value)))
        case p.InNetworks():
            return predicates.in_networks(unit, node, value(unit, node.value))
        case p.InList():
            at = unit.require(unit.read(("p", "arrived")))
            return predicates.in_list(unit, node, value(unit, node.value), at)
        case p.InEntry():
            entry = unit.require(value(unit, node.entry))
            return predicates.in_entry(unit, node, value(unit, node.value), entry)
        case p.TextTest():
            return predicates.text_test(unit, node, value(unit, node.left), value(unit, node.right))
        case p.Matches():
            return predicates.matches(unit, node, value(unit, node.value))
        case p.Presence():
            return predicates.presence(node, value(unit, node.operand))


def _read(unit: Unit, node: p.Expression) -> Code:
    vocabulary = unit.module.vocabulary
    match node:
        case p.EventFact():
            event = unit.require(unit.read(("v",)))
            get = code.attribute(event.result, "get")
            return Code(code.call(get, code.constant(node.name)), event.needs, optional=True)
        case p.HeaderFact():
            headers = unit.require(unit.field("p", vocabulary.payment, (node.side, "headers")))
            found = code.call("header", headers.result, code.constant(node.name))
            return Code(found, headers.needs, optional=True)
        case p.MetadataFact():
            entries = unit.require(unit.field("p", vocabulary.payment, ("metadata",)))
            get = code.attribute(entries.result, "get")
            found = code.call(get, code.constant(node.key))
            if node.inner:
                found = code.call("nested_entry", found, code.constant(node.inner))
            return _entry(unit, node.type, Code(found, entries.needs, optional=True))
        case p.TableValue():
            key = unit.require(value(unit, node.key))
            at = unit.require(unit.read(("p", "arrived")))
            table, column = code.constant(node.table), code.constant(node.column)
            found = code.call("in_table", code.name("e"), table, key.result, column, at.result)
            return Code(found, (*key.needs, *at.needs), optional=True)
        case _:
            (plain,) = reads_of(node, unit.module)
            return unit.read(plain)


def _entry(unit: Unit, kind: t.Type, entry: Code) -> Code:
    match kind:
        case t.Number():
            found = code.call("metadata_number", entry.result)
            return Code(found, entry.needs, optional=True)
        case t.String() | t.Boolean():
            wanted = code.name("str" if isinstance(kind, t.String) else "bool")
            local = unit.fresh("v")
            of_entry = code.call("type", code.bind(local, entry.result))
            return Code(code.name(local), (*entry.needs, code.compare_code("is", of_entry, wanted)))
        case _:
            return entry


def _logic(unit: Unit, node: p.Not | p.And | p.Or) -> Code:
    """A boolean's value, true, false or missing."""
    if isinstance(node, p.Not):
        operand = unit.require(value(unit, node.operand))
        return Code(code.opposite(operand.result), operand.needs)
    decisive = code.constant(isinstance(node, p.Or))
    locals_ = [unit.fresh("b") for _ in node.operands]
    decided = code.either(
        code.compare_code("is", code.bind(local, value(unit, operand).expression()), decisive)
        for local, operand in zip(locals_, node.operands, strict=True)
    )
    missing = code.either(
        code.compare_code("is", code.name(local), code.NONE_NODE) for local in locals_
    )
    otherwise = code.either_value(missing, code.NONE_NODE, code.constant(isinstance(node, p.And)))
    return Code(code.either_value(decided, decisive, otherwise), (), optional=True)


def _equal(unit: Unit, node: p.Compare) -> Code:
    """Whether the two sides are definitely equal: None equals no constant."""
    left, right = value(unit, node.left), value(unit, node.right)
    if not isinstance(node.left, p.Constant) and not isinstance(node.right, p.Constant):
        left, right = unit.require(left), unit.require(right)
    return predicates.compare(unit, replace(node, operator="=="), left, right)


def _has_open_end(unit: Unit, node: p.Between) -> bool:
    """Whether an end can be missing, in which case the other end may decide alone."""
    lets = unit.module.lets
    return not all(isinstance(resolve_let(end, lets), p.Constant) for end in (node.low, node.high))


def _as_comparisons(node: p.Between) -> p.And:
    return p.And(
        node.id,
        node.span,
        node.type,
        (
            p.Compare(node.id, node.span, node.type, "<=", node.low, node.value),
            p.Compare(node.id, node.span, node.type, "<=", node.value, node.high),
        ),
    )


def _loop(unit: Unit, node: p.Fold) -> Code:
    inside = Unit(unit.module, unit.reads, outside=unit)
    elements = unit.field("p", unit.module.vocabulary.payment, ("transactions",))
    where = None
    found = None
    if node.function in ("any", "all"):
        assert node.where is not None
        where = value(inside, node.where).expression()
    elif node.where is not None:
        where = test(inside, node.where, True)
    if node.value is not None:
        found = value(inside, node.value)
    return fold(unit, node, Loop(elements, inside.body, where, found))
