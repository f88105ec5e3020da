"""From rule text to the checked program: names, types, scales, histories, what is taken in."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.walk import parts
from tollkeeper.tests.examples import examples


@pytest.fixture
def rule_of(check_text, known):
    """The checked rule of a text without errors."""

    def run(text: str) -> p.Rule:
        checked = check_text(text, known)
        assert isinstance(checked.program, p.Rule), checked.diagnostics
        return checked.program

    return run


@pytest.fixture
def value_of(rule_of):
    """The checked form of one expression."""
    return lambda text: rule_of(f"rule example\nlet it = {text}").lets[-1].value


@pytest.fixture
def errors_of(check_text, known):
    """The codes of the errors of one condition."""

    def run(when: str) -> list[str]:
        found = check_text(f"rule example\ncondition c when {when} then deny", known).diagnostics
        return [each.code for each in found if each.severity == "error"]

    return run


@pytest.mark.parametrize(
    ("expression", "scale"),
    [
        ("10.00", 2),
        ("amount", 2),
        ("score", 2),
        ("amount + 1.2345", 4),
        ("amount - score", 2),
        ("amount * 0.125", 5),
        ("-amount", 2),
        ("abs(amount)", 2),
        ("amount / 2", None),
        ("min(amount, 0.001)", 3),
        ("max(amount, entropy(user.id))", None),
        ("coalesce(amount, 1)", 2),
        ("round(amount)", 0),
        ("round(entropy(user.id), 3)", 3),
        ("length(user.id)", 0),
        ("hour(timestamp)", 0),
        ("number(user.id)", 6),
        ('amount_in("USD")', 12),
        ('metadata["n"] + 1', 6),
        ("count(transactions)", 0),
        ("sum(transactions.duration)", 0),
        ("avg(transactions.duration)", None),
        ("sum(payments.amount by user.id over 1h)", 2),
        ("distinct(payments.amount by user.id over 1h)", 0),
        ("(timestamp - timestamp) / 5m", None),
    ],
)
def test_a_number_has_the_scale_of_what_it_is_made_from(value_of, expression, scale):
    kind = value_of(expression).type
    assert isinstance(kind, t.Number)
    assert kind.scale == scale


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("score", 0, 1),
        ("1 - score", 0, 1),
        ("score * -2", -2, 0),
        ("-amount", -(10**12), 0),
        ("abs(score - 1)", 0, 1),
        ("round(score)", 0, 1),
        ("hour(timestamp) + 1", 1, 24),
        ("count(payments by user.id over 1h)", 0, None),
        ("coalesce(score, 5)", 0, 5),
        ("amount * amount", 0, 10**24),
        ("amount * amount * amount * amount", 0, None),
    ],
)
def test_a_number_is_bounded_by_what_it_is_made_from(value_of, expression, low, high):
    kind = value_of(expression).type
    assert (kind.low, kind.high) == (
        None if low is None else Decimal(low),
        None if high is None else Decimal(high),
    )


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("timestamp - timestamp", t.Duration()),
        ("timestamp + 5m", t.Instant()),
        ("5m + timestamp", t.Instant()),
        ("5m * 0.5", t.Duration()),
        ("age(payments by user.id)", t.Duration()),
        ("max(payments.timestamp by user.id over 1h)", t.Instant()),
        ("min(timestamp, timestamp - 1h)", t.Instant()),
        ("lower(method.card.network)", t.String()),
        ('coalesce(merchant.country, "none")', t.String(("BR", "DE", "US", "none"))),
        ('device.headers["User-Agent"]', t.String()),
        ("payment.amount > 5", t.Boolean()),
    ],
)
def test_a_value_has_the_type_of_what_it_is_made_from(value_of, expression, kind):
    assert value_of(expression).type == kind


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('device.ip_address == "192.0.2.1"', 0xFFFF_C000_0201),
        ('device.ip_address == "::ffff:192.0.2.1"', 0xFFFF_C000_0201),
        ('device.ip_address == "2001:db8::1"', 0x20010DB8_00000000_00000000_00000001),
        ('timestamp > "1970-01-01T00:00:01.5Z"', 1_500_000),
        ('timestamp > "1970-01-01T01:00:00+01:00"', 0),
        ("age(payments by user.id) > 90d", 90 * 86_400_000_000),
        ("amount > -0.50 + 1", None),
        ("amount == 12.34", 1234),
        ('metadata["a"] == "x"', "x"),
        ('metadata["a"] == true', True),
    ],
)
def test_a_literal_takes_the_type_of_what_it_meets(value_of, expression, value):
    node = value_of(expression)
    if value is not None:
        assert node.right.value == value
        assert type(node.right.type) is type(node.left.type)


def test_a_literal_on_the_left_takes_the_type_as_well(value_of):
    node = value_of('"192.0.2.1" == device.ip_address')
    assert isinstance(node.left, p.Constant)
    assert node.left.type == t.Ip()


def test_long_numbers_keep_all_their_digits(value_of):
    node = value_of("-1234567890123456789012345678901234567.8 + amount").left
    assert node.value == -12345678901234567890123456789012345678
    assert node.type.low == Decimal("-1234567890123456789012345678901234567.8")


def test_networks_have_prefixes_of_128_bits(value_of):
    node = value_of('device.ip_address in ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"]')
    assert node.networks == (
        (0xFFFF_0A00_0000, 104),
        (0x20010DB8 << 96, 32),
        (0xFFFF_C000_0201, 128),
    )


def test_metadata_is_typed_by_each_use(rule_of):
    rule = rule_of(
        'rule example\nlet size = metadata["size"]\n'
        'condition a when size > 5 or size == "big" or size is missing then deny'
    )
    kinds = [
        part.type for part in parts(rule.conditions[0].when) if isinstance(part, p.MetadataFact)
    ]
    assert {type(kind) for kind in kinds} == {t.Number, t.String, t.Metadata}


def test_header_names_are_without_case(value_of):
    node = value_of('backend.headers["X-Shop"]')
    assert node == p.HeaderFact(node.id, node.span, t.String(), "backend", "x-shop")


def test_an_element_is_seen_before_the_payment(value_of):
    node = value_of('any(transactions where status == "declined" and payment.amount > 1)')
    found = {
        type(part): part.path for part in parts(node) if isinstance(part, (p.Fact, p.ElementFact))
    }
    assert found == {p.ElementFact: ("status",), p.Fact: ("amount",)}


def test_one_name_is_a_function_with_two_arguments_and_an_aggregate_with_one(value_of):
    assert isinstance(value_of("min(amount, 5)"), p.Call)
    assert isinstance(value_of("min(transactions.duration)"), p.Fold)
    assert isinstance(value_of("min(payments.amount by user.id over 1h)"), p.History)


def test_a_history_reads_records_with_the_keys_of_the_payment(value_of):
    node = value_of(
        'distinct(transactions.connector.id by order.id over 24h where decision.action == "deny")'
    )
    assert node.keys == node.series.by
    assert node.over == 86_400_000_000
    assert node.series.collection == "transactions"
    assert isinstance(node.series.value, p.ElementFact)
    assert isinstance(node.series.where.left, p.DecisionFact)


def test_equal_aggregates_are_one_history(rule_of):
    rule = rule_of(
        "rule example\n"
        "let a = count(payments by user.id over 1h)\n"
        "condition c when count(payments by user.id over 60m) > 5 and a > 2 then deny\n"
        "condition d when count(payments by user.id over 2h) > 5 then deny"
    )
    assert [history.over for history in rule.histories] == [3_600_000_000, 7_200_000_000]


def test_only_what_is_used_of_definitions_is_taken_in(rule_of):
    rule = rule_of("rule example\nuse cards\ncondition c when busy and stolen then deny")
    assert [(let.name, let.source) for let in rule.lets] == [
        ("small_amount", "cards"),
        ("seen", "cards"),
        ("busy", "cards"),
        ("stolen", "cards"),
    ]
    assert rule.lists == (p.ListUse("stolen_cards", "string"),)
    assert len(rule.histories) == 1


def test_ids_stay_unique_when_definitions_are_taken_in(rule_of):
    rule = rule_of(
        "rule example\nuse cards\nlet mine = 5\ncondition c when busy or mine > amount then deny"
    )
    roots = [*(let.value for let in rule.lets), *(each.when for each in rule.conditions)]
    ids = [part.id for root in roots for part in parts(root)]
    assert len({*ids}) == len({(part.id, part.span) for root in roots for part in parts(root)})


def test_a_metric_is_read_with_keys_of_the_payment(rule_of):
    rule = rule_of(
        "rule example\ncondition c when events.user_authentication.failures[user.id] > 3 then deny"
    )
    (history,) = rule.histories
    assert [key.path for key in history.keys] == [("user", "id")]
    assert history.series.event == "user_authentication"
    assert isinstance(history.series.where, p.LetValue)
    assert rule.lets[history.series.where.index].name == "failed"


@pytest.mark.parametrize(
    "metric",
    [
        "count(earlier events by user_id over 1h)",
        "any(events by user_id over 1h where id == user_id)",
        "age(events by user_id)",
        "decay(count of events by user_id half life 1h)",
    ],
)
def test_a_rule_reads_a_metric_as_its_type_declares_it(check_text, metric):
    declared = check_text(
        f"event visit\nfield user_id: string required\nmetric m = {metric}"
    ).program
    when = "events.visit.m[user.id] is present"
    text = f"rule example\ncondition c when {when} then deny"
    (read,) = check_text(text, KnownNames(events={"visit": declared})).program.histories
    (own,) = declared.metrics
    of_rule = {"id": read.id, "span": read.span, "keys": read.keys, "series": read.series}
    assert replace(own.history, **of_rule) == read


def test_a_let_sees_only_those_above(errors_of, check_text):
    found = check_text("rule example\nlet a = b\nlet b = 1\ncondition c when a > 0 then deny")
    assert [each.code for each in found.diagnostics] == ["unknown-name"]


@pytest.mark.parametrize(
    "when",
    [
        ['method.card.netwrok == "visa"', 'method.card.netwrok != "elo"'][0],
        "lowr(user.id) == lower(user.id)",
        "score > 1.2",
        "user.id in @nothing",
        "count(payments by usr.id over 1h) > 5",
        "ammount + 1 > 5",
    ],
)
def test_a_mistake_is_reported_once(errors_of, when):
    assert len(errors_of(when)) == 1


@pytest.mark.parametrize(
    "call",
    [
        "length(earlier user.id)",
        "length(user.id of payments)",
        "length(user.id by user.id)",
        "length(user.id over 1h)",
        "length(user.id half life 1h)",
        "length(user.id where amount > 5)",
        "max(amount of payments, 5)",
    ],
)
def test_a_function_takes_no_clause_of_an_aggregate(errors_of, call):
    assert errors_of(f"{call} > 3") == ["wrong-arguments"]


@pytest.mark.parametrize("written", ["0", "1", "0.99999999999999999999", f"0.{'0' * 400}1"])
def test_a_baseline_that_no_signal_could_move_is_refused(check_text, written):
    text = f"scorecard example\nbaseline {written}\nsignal s adds 1 when device is missing"
    assert [each.code for each in check_text(text).diagnostics] == ["baseline"]


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-03:00", "0001-01-01T00:00:00+03:00"])
def test_an_instant_beyond_the_calendar_is_refused(errors_of, text):
    assert errors_of(f'timestamp > "{text}"') == ["bad-instant"]


def test_names_lost_to_a_syntax_error_are_not_reported_again(vocabulary, known):
    text = "rule example\nlet limit = = 5\ncondition c when amount > limit then deny"
    parsed = parse(text)
    assert parsed.diagnostics
    assert check(parsed.file, text, vocabulary, known, parsed.lost).diagnostics == ()


def test_a_broken_definitions_file_is_the_only_error(check_text, known):
    found = check_text(
        "rule example\nuse broken\ncondition c when small and user.id in @x then deny", known
    )
    assert [each.code for each in found.diagnostics] == ["unknown-definitions"]


def test_the_built_in_event_type_watches_payments(check_text):
    checked = check_text(
        "event payment\n"
        'metric denied = count(payments by merchant.id over 15m where decision.action == "deny")\n'
        "metric seen = count(payments by merchant.id over 15m)\n"
        "monitor many_denied when seen > 20 and denied / seen > 0.2 by merchant.id every 1h"
    )
    assert isinstance(checked.program, p.EventType)
    assert [metric.name for metric in checked.program.metrics] == ["denied", "seen"]
    assert len(checked.program.histories) == 2
    assert checked.program.monitors[0].every == 3_600_000_000


@pytest.mark.parametrize("name", ["score", "decision", "payment", "payments", "events"])
def test_an_event_may_have_a_field_named_as_something_of_a_payment(check_text, name):
    checked = check_text(
        f"event verdict\nfield user_id: string required\nfield {name}: number\n"
        f"metric high = count(events by user_id over 1d where {name} > 3)\n"
        f"monitor many when high > 9 and {name} > 3"
    )
    assert checked.diagnostics == ()


def test_a_monitor_reads_its_metrics_as_lets(check_text):
    checked = check_text(
        "event delivery\nfield order_id: string required\n"
        "metric steps = count(events by order_id over 1d)\n"
        "monitor many when steps > 9"
    )
    assert isinstance(checked.program, p.EventType)
    assert isinstance(checked.program.monitors[0].when.left, p.LetValue)
    assert checked.program.lets[0].name == "steps"


def test_definitions_that_read_the_score_are_not_for_scorecards(check_text, known):
    found = check_text(
        "scorecard example\nuse cards\nbaseline 0.1\nsignal s adds 1 when risky", known
    )
    assert [each.code for each in found.diagnostics] == ["score-of-itself"]


def test_a_row_of_a_network_table_is_given_by_its_network(check_text):
    checked = check_text(
        "rule example\ntable places by network: country: string\n"
        'condition c when @places[device.ip_address].country == "BR" then deny\n'
        'test "one" given @places["192.0.2.0/24"].country = "BR" expect default\n'
        'test "two" given @places["192.0.2.1/24"].country = 5 expect default'
    )
    assert [each.code for each in checked.diagnostics] == ["host-bits", "wrong-type"]


def test_an_unknown_field_of_an_element_is_looked_for_among_its_fields(check_text):
    checked = check_text(
        "rule example\n"
        'condition c when any(transactions where connector.response_cod == "51") then deny'
    )
    assert [each.help for each in checked.diagnostics] == ["did you mean `response_code`?"]


TEXTS = [path.read_text() for path in sorted((Path(__file__).parent).glob("*/*.rule"))]
WORDS = sorted({word for text in TEXTS for word in re.findall(r"@?\w+|[^\s\w]+|\s+", text)})


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(TEXTS),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(WORDS)), min_size=1, max_size=6),
)
def test_a_file_with_any_words_in_it_gets_diagnostics_and_no_exception(
    vocabulary, known, text, changes
):
    for place, word in changes:
        at = int(place * len(text))
        text = f"{text[:at]} {word} {text[at:]}"
    parsed = parse(text)
    if parsed.file is not None:
        for found in check(parsed.file, text, vocabulary, known, parsed.lost).diagnostics:
            assert 0 <= found.span.start <= found.span.end <= len(text)


def test_long_chains_of_lets_are_checked_without_depth(check_text):
    lines = ["rule example", "let l0 = amount + 1"]
    lines += [f"let l{i} = l{i - 1} + l{i - 1}" for i in range(1, 499)]
    lines += ["condition c when not (l498 > 5) then deny"]
    assert check_text("\n".join(lines)).program is not None


@pytest.mark.parametrize("call", ['lower(user.id) == "İd"', 'upper(user.id) == "STRAßE"'])
def test_a_text_that_a_function_gives_character_by_character_may_occur(check_text, call):
    assert check_text(f"rule example\ncondition c when {call} then deny").diagnostics == ()


def test_what_lower_gives_of_a_text_is_told_as_it_gives_it(check_text):
    text = 'rule example\ncondition c when lower(user.id) == "ΣΑΣ" then deny'
    (found,) = check_text(text).diagnostics
    assert "σασ" in f"{found.message} {found.help}"


@pytest.mark.parametrize("written", ["", "x" * 1025])
def test_an_event_is_not_given_a_text_that_none_has(check_text, written):
    text = (
        'event visit\nfield user_id: string required\nmonitor m when user_id == "a"\n'
        f'test "t" given user_id = "{written}" expect no alert'
    )
    assert [each.code for each in check_text(text).diagnostics] == ["given-form"]


def test_metadata_is_not_given_a_length_of_time(check_text):
    text = (
        'rule example\ncondition c when metadata["n"] > 3 then deny\n'
        'test "t" given metadata["n"] = 5m expect deny'
    )
    assert [each.code for each in check_text(text).diagnostics] == ["open-metadata"]
