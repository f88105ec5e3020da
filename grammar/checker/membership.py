"""Check `in` and `not in`: literals, networks, lists and metadata entries."""

from __future__ import annotations

from decimal import Decimal

from tollkeeper.grammar import check_errors as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import literals, names
from tollkeeper.grammar.checker.entries import Infer
from tollkeeper.grammar.checker.scope import Scope, Work
from tollkeeper.grammar.words import kind_of

LIST_TYPES: dict[str, t.Type] = {
    "string": t.String(),
    "number": t.Number(t.METADATA_SCALE),
    "ip": t.Ip(),
}


def membership(work: Work, scope: Scope, node: s.Membership, infer: Infer) -> p.Expression | None:
    """Check `value in container`."""
    match node.container:
        case s.ListLiteral():
            return _in_literal(work, scope, node, node.container, infer)
        case s.ListName():
            return _in_list(work, scope, node, node.container, infer)
        case s.Name() | s.Attribute() | s.Subscript():
            return _in_entry(work, scope, node, infer)
        case s.Call(
            name=s.Identifier(text="range"), arguments=(s.Number() as low, s.Number() as high)
        ):
            value = work.text(node.value.span)
            ends = f"{value} between {work.text(low.span)} and {work.text(high.span)}"
            work.report(say.range_as_list(node.span, f"not ({ends})" if node.negated else ends))
            return None
        case _:
            infer(work, scope, node.value, None)
            work.report(say.not_a_list(node.container.span, work.text(node.container.span)))
            return None


def _in_entry(work: Work, scope: Scope, node: s.Membership, infer: Infer) -> p.Expression | None:
    if isinstance(node.container, s.Name) and names.is_unknown(work, scope, node.container):
        value = infer(work, scope, node.value, None)
        _report_no_list(work, node.container.span, node.container.text, value)
        return None
    entry = infer(work, scope, node.container, None)
    if not isinstance(entry, p.MetadataFact):
        value = infer(work, scope, node.value, None)
        if (
            entry is not None
            and value is not None
            and isinstance(entry.type, t.String)
            and isinstance(value.type, t.String)
        ):
            correction = f"{work.text(entry.span)} contains {work.text(value.span)}"
            correction = f"not ({correction})" if node.negated else correction
            work.report(say.text_in_text(node.span, correction))
        elif entry is not None:
            work.report(say.not_a_list(node.container.span, work.text(node.container.span)))
        return None
    value = infer(work, scope, node.value, t.String())
    if value is None:
        return None
    if not isinstance(value.type, t.String | t.Number | t.Boolean):
        work.report(say.metadata_kind(node.span, kind_of(value.type)))
        return None
    return p.InEntry(node.id, node.span, t.Boolean(), value, entry, node.negated)


def _report_no_list(work: Work, span: s.Span, name: str, value: p.Expression | None) -> None:
    """Report a list that is declared nowhere, with the type that the value would ask of it."""
    kinds = (kind for kind, held in LIST_TYPES.items() if value and type(held) is type(value.type))
    kind = next(kinds, "string")
    work.report(say.unknown_list(span, name, work.lists, kind, work.header_end))


def of_entry(work: Work, scope: Scope, node: s.Call, infer: Infer) -> p.Expression | None:
    """Check `count(metadata["a"])` and `any(metadata["a"] == "b")`, which means `"b" in
    metadata["a"]`.
    """
    argument = node.arguments[0]
    if node.name.text == "count":
        entry = infer(work, scope, argument, None)
        if not isinstance(entry, p.MetadataFact):
            return None
        return p.EntryCount(node.id, node.span, t.Number(0, Decimal(0)), entry)
    if not isinstance(argument, s.Compare) or argument.operator != "==":
        work.report(say.any_of_entry(node.span))
        return None
    value, listed = argument.right, argument.left
    if not isinstance(listed, s.Subscript):
        value, listed = listed, value
    meant = s.Membership(node.id, node.span, value, listed, False)
    return _in_entry(work, scope, meant, infer)


def _in_literal(
    work: Work, scope: Scope, node: s.Membership, container: s.ListLiteral, infer: Infer
) -> p.Expression | None:
    match container.items:
        case (s.ListName(name=name),):
            infer(work, scope, node.value, None)
            work.report(say.list_in_brackets(container.span, name))
            return None
    wrong = [item for item in container.items if not literals.is_literal(item)]
    for item in wrong:
        if isinstance(item, s.Name) and names.is_unknown(work, scope, item):
            work.report(
                say.unquoted_text(item.span, item.text, _choices_of(work, scope, node.value))
            )
        else:
            work.report(say.list_item(item.span))
    if wrong:
        return None
    if not container.items:
        work.report(say.empty_list(container.span))
        return None
    value = infer(work, scope, node.value, _own_type(container.items[0]))
    if value is None:
        return None
    if isinstance(value.type, t.Ip) and any(_is_network(item) for item in container.items):
        return _in_networks(work, node, value, container)
    found = [literals.meeting(work, item, value) for item in container.items]
    options = tuple(option for option in found if option is not None)
    if len(options) < len(found):
        return None
    return p.OneOf(node.id, node.span, t.Boolean(), value, options, node.negated)


def _choices_of(work: Work, scope: Scope, node: s.Expression) -> tuple[str, ...]:
    """The texts that a field can have; none where it has no choices."""
    field = names.field_of(work, scope, node)
    return field.choices or () if isinstance(field, t.String) else ()


def _own_type(item: s.Expression) -> t.Type | None:
    """Return a list item's own type, for a metadata entry to take."""
    match item:
        case s.Number() | s.Negate(operand=s.Number()):
            return t.Number(None)
        case s.Boolean():
            return t.Boolean()
        case s.Text():
            return t.String()
        case _:
            return t.Duration()


def _is_network(item: s.Expression) -> bool:
    return isinstance(item, s.Text) and "/" in item.value


def _in_networks(
    work: Work, node: s.Membership, value: p.Expression, container: s.ListLiteral
) -> p.Expression | None:
    found = []
    for item in container.items:
        if isinstance(item, s.Text):
            found.append(literals.network(work, item))
        else:
            literals.meeting(work, item, value)
            found.append(None)
    networks = tuple(network for network in found if network is not None)
    if len(networks) < len(found):
        return None
    return p.InNetworks(node.id, node.span, t.Boolean(), value, networks, node.negated)


def _in_list(
    work: Work, scope: Scope, node: s.Membership, container: s.ListName, infer: Infer
) -> p.Expression | None:
    name = container.name
    work.names_read.add(f"@{name}")
    if name not in work.lists:
        value = infer(work, scope, node.value, None)
        if name in work.tables:
            work.report(say.table_as_list(container.span, name))
        elif not work.is_excused(name):
            _report_no_list(work, container.span, name, value)
        return None
    if scope.of_event:
        work.report(say.not_in_history(container.span, f"@{name}", "a list"))
        return None
    use = work.lists[name]
    if use is None:
        infer(work, scope, node.value, None)
        return None
    wanted = LIST_TYPES[use.type]
    value = infer(work, scope, node.value, wanted)
    if value is None:
        return None
    if type(value.type) is not type(wanted):
        work.report(say.list_holds(node.span, name, kind_of(wanted), kind_of(value.type)))
        return None
    return p.InList(node.id, node.span, t.Boolean(), value, name, node.negated)
