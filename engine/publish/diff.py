"""The differences in meaning between two versions, in terms of the language, not of lines of text:
in what decides, and in what is promised of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from tollkeeper.engine.programs.compile.shown import one_line, shown_duration
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Version
from tollkeeper.grammar import program as p
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar import types as t
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.walk import PARTS, children

DifferenceKind: TypeAlias = Literal["added", "removed", "moved", "changed"]


class Difference(Struct, frozen=True):
    """`what` names the part (``condition `card_testing` ``), `aspect` the property that differs.

    `before` and `after` are source text, None where that side has none.
    """

    change: DifferenceKind
    what: str
    aspect: str | None = None
    before: str | None = None
    after: str | None = None


class NamedPart(Struct, frozen=True):
    """A named part of a program; `aspects` are its properties by name, texts or expressions."""

    noun: str
    name: str
    aspects: Mapping[str, Any]


class Side(Struct, frozen=True):
    """One of the two versions: its program, and the source texts that its spans refer to."""

    program: p.Program
    texts: Mapping[str | None, str]

    def written(self, node: p.Node, source: str | None = None) -> str:
        return one_line(self.texts.get(source, "")[node.span.start : node.span.end])


def diff(old: Version, new: Version) -> tuple[Difference, ...]:
    """The differences in meaning; empty for two texts that mean the same."""
    return diff_sides(*(side_of(version) for version in (old, new)))


def diff_sides(before: Side, after: Side) -> tuple[Difference, ...]:
    """The differences in meaning between two programs."""
    differences = [*_aspects(_whole_file(before), _whole_file(after), before, after)]
    for things in (_declarations, _lets, _decisive):
        differences += _differences(
            list(things(before.program)), list(things(after.program)), before, after
        )
    differences += _differences(list(_promises(before)), list(_promises(after)), before, after)
    return tuple(differences)


def side_of(version: Version) -> Side:
    """A stored version, with the text of its definitions."""
    texts: dict[str | None, str] = {None: version.text}
    return Side(decode_program(version.program), texts | dict(version.uses.items()))


# What a program holds


def _whole_file(side: Side) -> NamedPart:
    program = side.program
    aspects: dict[str, Any] = {"name": program.name, "title": program.title}
    if isinstance(program, p.Rule):
        aspects["otherwise"] = program.otherwise or "default"
    if isinstance(program, p.Scorecard):
        aspects["baseline"] = str(program.baseline)
    return NamedPart("", program.name, aspects)


def _declarations(program: p.Program) -> Iterator[NamedPart]:
    for use in program.lists:
        yield NamedPart("list", use.name, {"type": use.type})
    for table in program.tables:
        columns = {name: _type(type_) for name, type_ in table.columns.items()}
        yield NamedPart("table", table.name, {"lookup": table.by, "columns": str(columns)})


def _lets(program: p.Program) -> Iterator[NamedPart]:
    """The lets, without those that stand for metrics: these are compared as metrics."""
    metrics = program.metrics if isinstance(program, p.EventType) else ()
    for let in program.lets:
        if let.name in {metric.name for metric in metrics}:
            continue
        yield NamedPart("let", _name_of(let), {"value": (let.value, let.source)})


def _name_of(let: p.Let) -> str:
    """A let's name, after its event type's if it has one: a rule's own let may have the same."""
    return f"{let.event}.{let.name}" if let.event else let.name


def _decisive(program: p.Program) -> Iterator[NamedPart]:
    """The parts that decide, in source order: conditions, signals, or an event type's parts."""
    match program:
        case p.Rule():
            for condition in program.conditions:
                yield NamedPart(
                    "condition",
                    condition.name,
                    {
                        "title": condition.title,
                        "when": (condition.when, None),
                        "action": condition.action,
                    },
                )
        case p.Scorecard():
            for signal in program.signals:
                yield NamedPart(
                    "signal",
                    signal.name,
                    {
                        "title": signal.title,
                        "adds": (signal.adds, None),
                        "when": (signal.when, None),
                    },
                )
        case p.EventType():
            for field in program.fields:
                required = "required" if field.required else "optional"
                yield NamedPart(
                    "field", field.name, {"type": _type(field.type), "presence": required}
                )
            for metric in program.metrics:
                yield NamedPart(
                    "metric", metric.name, {"title": metric.title, "value": (metric.history, None)}
                )
            for monitor in program.monitors:
                every = None if monitor.every is None else shown_duration(monitor.every)
                keys = {f"key {place}": (key, None) for place, key in enumerate(monitor.by, 1)}
                aspects = {"title": monitor.title, "when": (monitor.when, None), "every": every}
                yield NamedPart("monitor", monitor.name, {**aspects, **keys})
            for number, label in enumerate(program.labels, start=1):
                parts = {"label": label.label or "none", "of": (label.payment, None)}
                yield NamedPart("label", str(number), {**parts, "when": (label.when, None)})


def _promises(side: Side) -> Iterator[NamedPart]:
    """The `must` lines and tests, from the text: a stored program is without them."""
    text = side.texts[None]
    if "must" not in text and "test" not in text:
        return
    text = _formatted(text)
    file = parse(text).file
    named: Counter[tuple[str, str]] = Counter()
    for item in () if file is None else file.items:
        match item:
            case s.Must():
                noun = "must"
                actions = ", ".join(sorted(action.text for action in item.actions))
                when = one_line(text[item.when.span.start : item.when.span.end])
                aspects = {"when": when, "never" if item.never else "always": actions}
            case s.Test():
                noun = "test"
                aspects = {
                    "given": _clauses(text, "given ", item.given),
                    "expect": _clauses(text, "expect ", item.expect),
                }
            case _:
                continue
        title = "" if item.title is None else item.title.value
        named[noun, title] += 1
        # Titles may be missing and may repeat.
        place = str(named[noun, title]) if not title or named[noun, title] > 1 else ""
        yield NamedPart(noun, " ".join(filter(None, (title, place))), aspects)


def _clauses(text: str, word: str, nodes: Sequence[s.Node]) -> str:
    """What stands in a test's clauses, without the word that each begins with."""
    spans = (node.span for node in nodes)
    return ", ".join(one_line(text[span.start : span.end]).removeprefix(word) for span in spans)


def _formatted(text: str) -> str:
    """The text in its standard layout; as it is where a later release no longer reads it."""
    try:
        return format_file(text)
    except ValueError:
        return text


def _type(type_: t.Type) -> str:
    if isinstance(type_, t.String) and type_.choices is not None:
        return " | ".join(type_.choices)
    return type(type_).__name__.lower()


# What is different


def _differences(
    old: Sequence[NamedPart], new: Sequence[NamedPart], before: Side, after: Side
) -> Iterator[Difference]:
    old_by, new_by = ({(each.noun, each.name): each for each in side} for side in (old, new))
    for key, thing in old_by.items():
        if key not in new_by:
            yield Difference("removed", _what(thing), before=_gist(thing, before))
    for key, thing in new_by.items():
        if key not in old_by:
            yield Difference("added", _what(thing), after=_gist(thing, after))
    for what in _moves(
        [key for key in old_by if key in new_by], [k for k in new_by if k in old_by]
    ):
        place = f"place {[*new_by].index(what) + 1}"
        yield Difference(
            "moved", _what(new_by[what]), None, f"place {[*old_by].index(what) + 1}", place
        )
    for key, thing in new_by.items():
        if key in old_by:
            yield from _aspects(old_by[key], thing, before, after)


def _what(thing: NamedPart) -> str:
    return f"{thing.noun} `{thing.name}`" if thing.noun else f"`{thing.name}`"


def _gist(thing: NamedPart, side: Side) -> str | None:
    """A part's properties in one line."""
    texts = []
    for name, aspect in thing.aspects.items():
        if name == "title" or aspect is None or aspect == (None, None):
            continue
        text = aspect if isinstance(aspect, str) else side.written(*aspect)
        texts.append(f"{name} {text}")
    return "; ".join(texts) or None


def _moves(
    old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """The conditions whose position among the others changed; order matters for conditions alone."""
    if old and old[0][0] != "condition":
        return
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    stayed = {new[block.b + offset] for block in blocks for offset in range(block.size)}
    yield from (key for key in new if key not in stayed)


def _aspects(old: NamedPart, new: NamedPart, before: Side, after: Side) -> Iterator[Difference]:
    for name in {**old.aspects, **new.aspects}:
        was, aspect = (side.aspects.get(name) for side in (old, new))
        if isinstance(aspect or was, tuple):
            was, aspect = was or (None, None), aspect or (None, None)
            yield from _expressions(_what(new), name, was, aspect, before, after)
        elif was != aspect:
            yield Difference("changed", _what(new), name, was, aspect)


def _expressions(
    what: str, aspect: str, old: tuple[Any, Any], new: tuple[Any, Any], before: Side, after: Side
) -> Iterator[Difference]:
    """A difference for each smallest differing part; a constant is reported as a threshold."""
    (was, old_source), (now, new_source) = old, new
    if was is None or now is None:
        if was is not now:
            yield Difference(
                "changed",
                what,
                aspect,
                None if was is None else before.written(was, old_source),
                None if now is None else after.written(now, new_source),
            )
        return
    names = (_let_names(before.program), _let_names(after.program))
    for left, right in _smallest(was, now, names):
        constants = isinstance(left, p.Constant) and isinstance(right, p.Constant)
        yield Difference(
            "changed",
            what,
            "threshold" if constants else aspect,
            before.written(left, old_source),
            after.written(right, new_source),
        )


def _let_names(program: p.Program) -> Callable[[int], str]:
    return lambda index: _name_of(program.lets[index])


def _smallest(
    old: p.Expression, new: p.Expression, names: tuple[Callable[[int], str], Callable[[int], str]]
) -> Iterator[tuple[p.Expression, p.Expression]]:
    if type(old) is not type(new) or _own_content(old, names[0]) != _own_content(new, names[1]):
        yield old, new
        return
    left, right = _parts_to_compare(old), _parts_to_compare(new)
    if isinstance(old, p.OneOf) and isinstance(new, p.OneOf):
        left, right = _without_shared(left, right)
    if len(left) != len(right):
        yield old, new
        return
    for pair in zip(left, right, strict=True):
        yield from _smallest(*pair, names)


def _parts_to_compare(node: p.Expression) -> list[p.Expression]:
    """The parts of an expression to compare; keys equal to the series' own are compared once."""
    if isinstance(node, p.History) and node.keys == node.series.by:
        return list(children(node.series))
    return list(children(node))


def _without_shared(
    old: Sequence[p.Expression], new: Sequence[p.Expression]
) -> tuple[list[p.Expression], list[p.Expression]]:
    """The parts of two `in` expressions: the value looked up, then the constants that only one has."""
    held, holds = ({_constant(each) for each in side[1:]} for side in (old, new))
    left = [each for each in old[1:] if _constant(each) not in holds]
    right = [each for each in new[1:] if _constant(each) not in held]
    return [old[0], *left], [new[0], *right]


def _constant(node: p.Expression) -> Any:
    return _own_content(node, str)


def _own_content(node: p.Expression, name_of: Callable[[int], str]) -> Any:
    """A node's own content, without the nodes inside it."""
    match node:
        case p.Constant(value=value, type=t.Number(scale=int(scale))):
            return Fraction(value) / 10**scale
        case p.Constant(value=value):
            return type(value).__name__, value
        case p.LetValue():
            return name_of(node.index)
        case p.InNetworks():
            return node.negated, frozenset(node.networks)
        case p.History():
            series = node.series
            shape = (series.where is None, series.value is None, len(series.by), len(node.keys))
            counted = (series.collection, series.event)
            return node.function, node.over, node.earlier, counted, shape
    inner = {id(part) for part in children(node)}
    own = []
    for name in PARTS[type(node)]:
        value = getattr(node, name)
        held = value if isinstance(value, tuple) else (value,)
        if name != "type" and not any(id(part) in inner for part in held):
            own.append(value)
    return own
