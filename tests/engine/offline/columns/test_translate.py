"""What SQL says of an expression is what the interpreter says, for whatever it doesn't refuse to say."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlglot import exp

from tollkeeper.engine.columns.columns import arrays_of, column_form
from tollkeeper.engine.columns.tables import fact_columns
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.offline.columns.fact_rows import FactRows
from tollkeeper.engine.offline.columns.own_functions import make_own_functions
from tollkeeper.engine.offline.columns.recorded_lists import RecordedLists
from tollkeeper.engine.offline.columns.sql import DIALECT, NotExactError, sql_of
from tollkeeper.engine.offline.columns.sql_functions import (
    ZONES_KNOWN,
    hour_of,
    local_time,
    weekday_of,
)
from tollkeeper.engine.offline.columns.window_values import (
    carried_window,
    raw_window,
    read_window,
    translation_of,
)
from tollkeeper.engine.offline.zone_offsets import zone_offsets
from tollkeeper.engine.programs.compile.functions import hour, weekday
from tollkeeper.engine.programs.compile.interpreter import evaluate
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.tests.engine.offline.backtest.test_backtest import rule
from tollkeeper.tests.engine.programs.compile.payments import (
    ENVIRONMENT,
    SPECS,
    Situation,
    held_entries,
    situation,
)
from tollkeeper.tests.engine.programs.compile.programs import ZONES, rules
from tollkeeper.tests.engine.programs.compile.test_agreement import (
    PROGRAMS,
    THOROUGH,
    scalars,
    scope_of,
)

PAYMENTS = 40
READ = FactRows([field.access for field in full_vocabulary().payment.values()], "payment")
RATES = {"BRL": {"USD": "0.1800000001"}, "EUR": {"USD": "1e26"}}
SETTINGS = [AccountSettings(time_zone=str(ENVIRONMENT.time_zone), rates=RATES)]


def as_exported(seen: Situation) -> Situation:
    """As an export has it: what is derived of a device or a card is there with these alone."""
    facts, payment = seen.facts, seen.facts.payment
    method = payment.method
    facts = replace(
        facts,
        card_fingerprint=facts.card_fingerprint if method and method.card else None,
        device_client=facts.device_client if payment.device else None,
        backend_client=facts.backend_client if payment.backend else None,
        device_ip=facts.device_ip if payment.device else None,
        backend_ip=facts.backend_ip if payment.backend else None,
    )
    return Situation(facts, seen.score, seen.values, ENVIRONMENT)


def put_rows(tables: Any, program: p.Rule, seen: list[Situation]) -> None:
    """The view `seen` of the situations, and the lists."""
    facts: list[Facts] = [each.facts for each in seen]
    columns = {
        c.name: array
        for c, array in zip(fact_columns(), arrays_of(fact_columns(), facts), strict=True)
    }
    columns["sequence"] = pa.array(range(len(seen)))
    columns["arrived"] = pa.array([each.arrived for each in facts])
    columns["score"] = pa.array([each.score for each in seen], pa.int64())
    for index, history in enumerate(program.histories):
        values = [each.values[index] for each in seen]
        columns[raw_window(index)] = column_form(history.type)[1](values)
    tables.register("payments", pa.table(columns))
    chosen = {**READ.columns}
    for index, history in enumerate(program.histories):
        chosen[raw_window(index)] = f"payment.{raw_window(index)}"
        chosen[read_window(index)] = carried_window(history.type, chosen[raw_window(index)])
    selected = ", ".join(f"{said} AS {name}" for name, said in chosen.items())
    tables.execute(
        f"CREATE VIEW seen AS SELECT sequence, arrived, score, {selected} FROM payments AS payment"
    )
    entries = [(name, each.value, each.columns) for name in SPECS for each in held_entries(name)]
    columns = zip(("list", "value", "columns"), zip(*entries, strict=True), strict=True)
    tables.register("made_lists", pa.table(dict(columns)))
    tables.execute(
        "CREATE VIEW lists AS SELECT *, 0 AS valid_from,"
        " NULL::BIGINT AS valid_to, NULL::TIMESTAMPTZ AS expires_at FROM made_lists"
    )


def in_sql(tables: Any, program: p.Rule, parts: list[p.Expression]) -> dict[int, list[Any]]:
    """The values of the parts that SQL says exactly of all the rows, by their indexes."""
    said, guards = {}, []
    lists = RecordedLists(tables, SPECS)
    for index, part in enumerate(parts):
        translation = translation_of(program, READ, lists, SETTINGS)
        try:
            said[index] = sql_of(translation.test(part))
        except NotExactError:
            continue
        tests = [f"coalesce({sql_of(each)}, TRUE)" for each in translation.guards]
        guards.append(f"bool_and({' AND '.join(tests) or 'TRUE'})")
    if not said:
        return {}
    (held,) = tables.execute(f"SELECT {', '.join(guards)} FROM seen").fetchall()
    exact = [index for index, is_exact in zip(said, held, strict=True) if is_exact]
    if not exact:
        return {}
    texts = ", ".join(said[index] for index in exact)
    rows = tables.execute(f"SELECT {texts} FROM seen ORDER BY sequence").fetchall()
    return dict(zip(exact, map(list, zip(*rows, strict=True)), strict=True))


def of_kind(value: Any, kind: t.Type) -> Any:
    return int.from_bytes(value) if isinstance(kind, t.Ip) and value is not None else value


def compare(program: p.Rule, seen: list[Situation], parts: list[p.Expression]) -> set[int]:
    """Which of the parts SQL says."""
    with closing(duckdb.connect()) as tables:
        make_own_functions(tables)
        put_rows(tables, program, seen)
        said = in_sql(tables, program, parts)
    for place, each in enumerate(seen):
        scope = scope_of(program, each)
        for index, found in said.items():
            part, value = parts[index], found[place]
            meant = carry(evaluate(part, scope), part.type)
            value = of_kind(value, part.type)
            assert (type(value), value) == (type(meant), meant), (part, each.facts, each.values)
    return {*said}


@given(rules(), st.integers(0, 2**32))
@settings(THOROUGH, max_examples=max(PROGRAMS // 10, 1))
def test_sql_values_every_part_as_the_interpreter(program: p.Rule, seed: int) -> None:
    random = Random(seed)
    seen = [as_exported(situation(random, program.histories)) for _ in range(PAYMENTS)]
    compare(program, seen, scalars(program))


def test_a_recorded_decimal_of_all_digits_that_fit_is_carried_whole() -> None:
    for text, whole in (
        ("999999999999.999999", 10**18 - 1),
        ("100000000", 10**14),
        ("-0.000001", -1),
        ("1000000000000", None),
    ):
        asked = carried_window(t.Number(scale=6), f"CAST('{text}' AS DECIMAL(38, 6))")
        assert duckdb.sql(f"SELECT {asked}").fetchall() == [(whole,)]


def test_money_is_carried_up_to_what_is_told_to_be_missing() -> None:
    for text, whole in (
        ("9999999999999.99", 10**15 - 1),
        ("-9999999999999.99", 1 - 10**15),
        ("0.01", 1),
        ("10000000000000", None),
    ):
        asked = carried_window(t.Number(scale=2), f"CAST('{text}' AS DECIMAL(38, 2))")
        assert duckdb.sql(f"SELECT {asked}").fetchall() == [(whole,)]


def test_what_few_would_expect_of_sql() -> None:
    """`NULL NOT IN ()` is true to SQL, `least` passes over what is missing, sums wrap or fail."""
    seen = [as_exported(situation(Random(seed), ())) for seed in range(PAYMENTS)]
    for text in (
        "amount not in [1.123, 2.2222]",
        "amount in [0.001]",
        "min(amount, 5) < 3",
        "max(amount, score) >= 0",
        "not (user.email is missing) and amount / 0 > 1",
        "amount * 99999999999999999999 > 1",
        "(amount + 99999999999999999999) * 3 > 1",
        "user.id in @strings or user.id not in @strings",
        "device is missing or transactions is missing",
        "amount between 1 and score",
        "user.email contains user.id",
        'method.card.bin starts with "41" and not (user.id matches /^$/)',
        'device.ip_address in ["10.0.0.0/8"] or backend.ip_address not in ["::/0"]',
        'coalesce(user.id, order.id, "none") == "none"',
        "amount in @numbers or score not in @numbers",
        "round(amount * 1.005, 1) > 10",
        'left(user.id, 2) == "a@"',
        'device.headers["User-Agent"] contains "a" or backend.headers["x-a"] is missing',
        'metadata["a"] == "a" or metadata["b"] == true',
        "number(method.card.bin) > 41000000",
        "timestamp + 1h * 1.5 > timestamp",
        "length(user.id) > 1",
        "timestamp - 7000d < timestamp",
        "device.ip_address in @addresses or backend.ip_address not in @addresses",
        'any(transactions where status == "declined" and connector.id in @strings)',
        "all(transactions where duration > 100 and timestamp > payment.timestamp)",
        "count(transactions where id is missing) + sum(transactions.duration) > 2",
        "avg(transactions.duration) > 0.5 or max(transactions.timestamp) > timestamp",
        "distinct(transactions.connector.id) > 1 and min(transactions.duration) < 50",
        "-distinct(transactions.connector.id) < -1",
        "entropy(user.id) > 1 or user.id matches /\\p{L}/",
        "upper(user.id) == lower(user.id)",
        'metadata["a"] > 0.1 or metadata["b"] is missing',
        'amount in metadata["a"] or count(metadata["b"]) == 0',
        "round(amount / 3, 2) > 1 and device.headers is present",
        'ip_network(device.ip_address, 24) == "10.0.0.0/24"',
        'hour(timestamp) > 3 and weekday(timestamp) == "sunday"',
        'hour(timestamp + 1h) > 3 and weekday(timestamp - 1d) == "sunday"',
        'weekday(coalesce(timestamp, timestamp + 1d) + 0s) == "sunday"',
    ):
        program = rule(
            "rule r\n  list strings: string\n  list numbers: number\n  list addresses: ip\n"
            f"  condition c when {text} then deny\n"
        )
        assert compare(program, seen, [program.conditions[0].when]) == {0}, text


def test_digits_in_metadata_are_a_key_and_no_place_in_a_list() -> None:
    plain = as_exported(situation(Random(1), ()))
    sent: list[dict[str, Any]] = [
        {"a": held} for held in (["x", [True]], {"0": "x", "1": {"0": True}}, {"1": [True]}, "x")
    ]
    payments = [replace(plain.facts.payment, metadata=each) for each in sent]
    seen = [Situation(replace(plain.facts, payment=e), 0, (), ENVIRONMENT) for e in payments]
    program = rule(
        'rule r\n  condition c when metadata["a"]["0"] == "x" or metadata["a"]["1"]["0"] == true'
        ' or metadata["a"]["0"] is present then deny\n'
    )
    assert 0 in compare(program, seen, scalars(program))


@pytest.mark.parametrize(
    ("first", "step"),
    [
        ("amount > 1", "{0} or {0}"),
        ("amount", "min({0}, 5)"),
        ("amount", "{0} / {0}"),
        ("amount > 1", "any(transactions where {0} or {0})"),
    ],
)
def test_lets_that_double_with_each_step_are_refused_before_they_are_written_out(
    first: str, step: str
) -> None:
    lets = [f"let b0 = {first}", *(f"let b{n + 1} = {step.format(f'b{n}')}" for n in range(60))]
    program = rule("\n  ".join(["rule r", *lets, "condition c when b60 is present then deny\n"]))
    translation = translation_of(program, READ)
    with pytest.raises(NotExactError, match="too long in SQL"):
        translation.test(program.conditions[0].when)


def test_a_few_nested_lets_are_said_in_sql() -> None:
    seen = [as_exported(situation(Random(seed), ())) for seed in range(PAYMENTS)]
    lets = ["let b0 = amount / 3", *(f"let b{n + 1} = min(b{n}, 50) + {n}" for n in range(4))]
    program = rule("\n  ".join(["rule r", *lets, "condition c when b4 > 9 or b3 < 2 then deny\n"]))
    assert compare(program, seen, [program.conditions[0].when]) == {0}


NEAR = st.integers(*(to_microseconds(datetime(year, 1, 2, tzinfo=UTC)) for year in (2000, 2049)))


@given(st.lists(NEAR, min_size=30, max_size=30), st.sampled_from(ZONES))
@settings(max_examples=8, deadline=None)
def test_clocks_show_in_sql_what_they_show_live(times: list[int], zone: str) -> None:
    """Also beside each change to and from summer time."""
    there = ZoneInfo(zone)
    changes = zone_offsets(there, *ZONES_KNOWN)[0]
    times = times + [change + shift for change in changes[-3:] for shift in (-1, 0)]
    local = local_time(exp.column("at"), there)
    asked = f"SELECT {hour_of(local).sql(DIALECT)}, {weekday_of(local).sql(DIALECT)}"
    found = duckdb.execute(f"{asked} FROM (SELECT unnest(?) AS at)", [times]).fetchall()
    assert found == [(hour(each, there), weekday(each, there)) for each in times]
