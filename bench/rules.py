"""What does a rule cost, compared with a hand-written Python function and other rule engines?

    python -m tollkeeper.bench.rules

Decisions are checked to be equal on every payment; processor times are medians over alternating
rounds. A peer that isn't installed is named and left out.
"""

from __future__ import annotations

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import truediv
from random import Random
from statistics import median
from time import process_time_ns
from typing import Any, TypeAlias

from tollkeeper.bench.peers import DISTRIBUTIONS, load
from tollkeeper.bench.peers.documents import documents, inputs, situation
from tollkeeper.bench.peers.hand_written import decide as by_hand
from tollkeeper.bench.tables import show
from tollkeeper.engine.facts.vocabulary import vocabulary
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Rule

SEED = 7
PAYMENTS = 20_000
TIMED = 2_000
ROUNDS = 9
SIZES = (1, 5, 10, 50, 100, 500)
VOCABULARY = vocabulary({})

# A function, and a sequence of values for each of its parameters.
Deciding: TypeAlias = tuple[Callable[..., Any], Sequence[Sequence[Any]]]

TWELVE = """
rule twelve
  let declines = count(transactions by order.id over 24h where status == "declined")
  let cards = distinct(payments.method.card.fingerprint by device.fingerprint.id over 1h)
  condition renewal when device is missing and merchant.category_code == "4900" then allow
  condition many_cards when cards >= 9 and amount < 10.00 then deny
  condition guessing when declines > 5 and score >= 0.9 then deny
  condition verify when type == "verify" and method.card.presence == "card_present" then allow
  condition brands when method.card.network in ["jcb", "discover", "other"] and amount > 4900 then challenge
  condition places when not (merchant.country in ["BR", "US", "FR"]) and amount > 4500.50 then challenge
  condition emails when user.email ends with ".test" and amount > 4000 then challenge
  condition foreign when status == "declined" and currency in ["USD", "EUR"] and score > 0.95 then deny
  condition totals when amount * 3 - 1.50 > 14000 and order.id is present then challenge
  condition prints
    when (device.fingerprint.provider != "basic" or user.id is missing) and amount < 1 then challenge
  condition bins when method.card.bin starts with "4000" and amount between 1 and 5 then challenge
  condition fast when cards >= 3 and (declines > 3 or score >= 0.95) then challenge
"""

EXPENSIVE = 'entropy(lower(device.headers["User-Agent"])) > 100'
CHEAP = 'length(lower(device.headers["User-Agent"])) > 1000'


@dataclass(frozen=True, slots=True)
class Row:
    """Nanoseconds per payment (or per rule, where rules are compiled) and the ratio to the table's
    first row; both None for an engine that isn't installed.
    """

    table: str
    subject: str
    nanoseconds: float | None
    ratio: float | None


def checked(text: str) -> Rule:
    """Return the checked rule of a text."""
    file = parse(text).file
    assert file is not None
    found = check(file, text, VOCABULARY, KnownNames())
    assert isinstance(found.program, Rule), found.diagnostics
    return found.program


def compiled(rule: Rule) -> Callable[..., int]:
    return compile_rule(rule, VOCABULARY)


def measure() -> list[Row]:
    """Return all tables' rows, in order.

    AssertionError if two deciders differ on a payment.
    """
    bodies = list(documents(SEED, PAYMENTS))
    gc.disable()
    try:
        return [*beside_peers(bodies), *growth(bodies), *sharing(bodies)]
    finally:
        gc.enable()


def beside_peers(bodies: Sequence[bytes]) -> Iterator[Row]:
    """The twelve conditions from three kinds of input, by every installed engine."""
    situations = columns(bodies)
    given = [inputs(json.loads(body)) for body in bodies]
    twelve = compiled(checked(TWELVE))
    prepared: dict[str, Deciding] = {
        "hand-written": (by_hand, situations),
        "compiled": (twelve, situations),
    }
    from_dict: dict[str, Deciding] = {"hand-written": (by_hand, situations)}
    from_json: dict[str, Deciding] = {
        "msgspec, hand-written": (lambda body: by_hand(*situation(body)), [bodies]),
        "msgspec, compiled": (lambda body: twelve(*situation(body)), [bodies]),
    }
    missing = []
    for module in DISTRIBUTIONS:
        name, peer = load(module)
        if peer is None:
            missing.append(name)
            continue
        prepared[name] = (peer.decide, [[peer.prepare(each) for each in given]])
        from_dict[name] = (peer.decide_inputs, [given])
        from_json[name] = (peer.decide_json, [bodies])
    expected = list(map(by_hand, *situations))
    tables = {
        "The twelve conditions, prepared input": prepared,
        "From a dict": from_dict,
        "From JSON": from_json,
    }
    for table, deciders in tables.items():
        for name, (decide, these) in deciders.items():
            assert list(map(decide, *these)) == expected, (table, name)
        yield from timed(table, deciders)
        yield from (Row(table, name, None, None) for name in missing)


def growth(bodies: Sequence[bytes]) -> Iterator[Row]:
    """Rules of increasing size, none of whose conditions is met: deciding, and compiling."""
    situations = columns(bodies)
    rules = {f"{size} conditions": checked(growing(size)) for size in SIZES}
    yield from timed(
        "More conditions, none of them met",
        {name: (compiled(rule), situations) for name, rule in rules.items()},
    )
    yield from timed("Compiling them", {name: (compiled, [[rule]]) for name, rule in rules.items()})


def sharing(bodies: Sequence[bytes]) -> Iterator[Row]:
    """An expensive part in one condition and in 500, compared with a cheap one: if it is evaluated
    once, it adds as much to 500 conditions as to one.
    """
    situations = columns(bodies)
    rules = {
        f"{size} with {what} part": sharing_rule(size, part)
        for size in (1, 500)
        for what, part in (("a cheap", CHEAP), ("the same expensive", EXPENSIVE))
    }
    yield from timed(
        "A part that conditions share",
        {name: (compiled(checked(rule)), situations) for name, rule in rules.items()},
    )


def growing(conditions: int) -> str:
    lines = [
        f'  condition c{index} when amount > 5000 and user.id == "u{index}" or score > 1.00 then deny'
        if index % 2
        else f'  condition c{index} when device.fingerprint.id == "f{index}" and amount < {index} then deny'
        for index in range(conditions)
    ]
    return "\n".join(["rule growing", *lines])


def sharing_rule(conditions: int, part: str) -> str:
    lines = [
        f'  condition c{index} when user.id == "u{index}" or {part} and amount < {index} then deny'
        for index in range(conditions)
    ]
    return "\n".join(["rule sharing", *lines])


def columns(bodies: Sequence[bytes]) -> list[Sequence[Any]]:
    """Return the arguments of a compiled rule, each as one sequence over all payments."""
    return list(zip(*map(situation, bodies), strict=True))


def timed(table: str, deciders: Mapping[str, Deciding]) -> Iterator[Row]:
    """Medians over rounds, each in another order; ratios are within a round."""
    random, names = Random(SEED), list(deciders)
    times: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name in random.sample(names, len(names)):
            times[name].append(nanoseconds(*deciders[name]))
    first = times[names[0]]
    for name, taken in times.items():
        yield Row(table, name, median(taken), median(map(truediv, taken, first)))


def nanoseconds(decide: Callable[..., Any], given: Sequence[Sequence[Any]]) -> float:
    """Return the processor time per input in the second of two passes.

    The first pass fills the processor's caches, which the previous decider has filled with its own
    data.
    """
    few = [column[:TIMED] for column in given]
    deque(map(decide, *few), maxlen=0)
    start = process_time_ns()
    deque(map(decide, *few), maxlen=0)
    return (process_time_ns() - start) / len(few[0])


def show_rows(rows: Iterable[Row]) -> None:
    for title, group in groupby(rows, key=lambda row: row.table):
        show(
            title,
            ["", "µs", "×"],
            [
                [row.subject, "not installed", None]
                if row.nanoseconds is None
                else [row.subject, row.nanoseconds / 1000, row.ratio]
                for row in group
            ],
        )


def main() -> None:
    print(
        f"{PAYMENTS:,} payments checked, {TIMED:,} timed: medians of {ROUNDS} alternating rounds.\n"
    )
    show_rows(measure())


if __name__ == "__main__":
    main()
