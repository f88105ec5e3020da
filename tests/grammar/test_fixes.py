"""What a program can change in a text to remove a finding, and what of it is done unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.cli import main
from tollkeeper.engine.programs.source import find_all, read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.diagnostics import Edit, Fix
from tollkeeper.grammar.fixes import applied_safely, apply_fixes, quoted
from tollkeeper.grammar.functions import AGGREGATES
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.syntax import Span
from tollkeeper.tests.examples import examples

HERE = Path(__file__).parent
FILES = sorted([*HERE.glob("broken/*.rule"), *HERE.glob("mistakes/*.rule")])


def found_in(text: str):
    return read_file(text.encode(), KnownNames()).diagnostics


def errors_in(text: str):
    return [each for each in found_in(text) if each.severity == "error"]


def rule(expression: str) -> str:
    return f"rule r\n  condition c when {expression} then deny\n"


def fixed(expression: str) -> str:
    """The expression with the safe fixes, and nothing left to find but warnings."""
    text = applied_safely(rule(expression), found_in)
    assert not [each for each in found_in(text) if each.severity == "error"], text
    return text.removeprefix("rule r\n  condition c when ").removesuffix(" then deny\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("type = 'verify'", 'type == "verify"'),
        ("user.id is missing&&type==“verify”", 'user.id is missing and type=="verify"'),
        ("user.id IS MISSING", "user.id is missing"),
        ('!(type == "verify")', 'not (type == "verify")'),
        ('user.id starts "x"', 'user.id starts  with "x"'),
        ('metadata.sku == "x"', 'metadata["sku"] == "x"'),
        ("any(transactions where duration > 5s)", "any(transactions where duration > 5000)"),
        ('type\u00a0== "verify"', 'type == "verify"'),
    ],
)
def test_what_can_mean_one_thing_only_is_written_so(written, meant):
    assert fixed(written) == meant


@pytest.mark.parametrize(
    "expression",
    ['method.card.network == "viza"', "amonut > 5", 'not (method.card.bin == "41111111")'],
)
def test_a_guess_is_offered_and_never_made_unasked(expression):
    text = rule(expression)
    assert any(each.fixes for each in found_in(text))
    assert applied_safely(text, found_in) == text


def test_what_is_never_used_goes_with_its_line():
    text = 'rule r\n  let a = 1\n  let b = a + 1\n  condition c when type == "verify" then deny\n'
    assert applied_safely(text, found_in) == rule('type == "verify"').replace("c when", "c when")


def test_every_offered_fix_removes_its_finding_or_brings_the_next_one():
    for path in FILES:
        text = path.read_text()
        for each in found_in(text):
            for fix in each.fixes:
                after = apply_fixes(text, [fix])
                assert after != text
                assert each not in found_in(after), (path.name, each, after)


TRANSACTION_ASKED = st.sampled_from(
    [
        'transactions.status == "declined"',
        '"51" == transactions.connector.response_code',
        'not (transactions.status in ["declined", "failed"])',
        'transactions.status == "declined" and transactions.duration > 5000',
        "(transactions.connector.id is missing)",
    ]
)
COUNTS = st.sampled_from(
    ["len({})", "size({})", "strlen({})", "{}.length()", "{}.size()", "{}.len()"]
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.builds("{}({})".format, st.sampled_from(["any", "all"]), TRANSACTION_ASKED)
    | st.builds("count({}) > 2".format, TRANSACTION_ASKED)
    | st.builds(lambda count: count.format("transactions") + " > 2", COUNTS)
)
def test_every_fix_offered_for_what_is_asked_of_attempts_makes_a_rule_without_an_error(expression):
    text = rule(expression)
    fixes = [fix for each in found_in(text) for fix in each.fixes]
    assert fixes
    for fix in fixes:
        after = apply_fixes(text, [fix])
        assert not [each for each in found_in(after) if each.severity == "error"], after


TEXTS = ("user.email", "method.card.bin", "type", 'metadata["sku"]')
NO_TEXTS = ("amount", "timestamp", "device.ip_address", "device", "merchant")
OF_TEXTS = (
    *("len({}) > 3", "strlen({}) > 3", "{}.length() > 3", "{}.size() > 3"),
    *('lcase({}) == "x"', '{}.lower() == "x"', '{}.toUpperCase() == "X"'),
    *('{}.startsWith("x")', '{}.endswith("x")', '{}.contains("x")', 'contains({}, "x")'),
)


@pytest.mark.parametrize("written", OF_TEXTS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_written_of_a_text_out_of_habit_is_offered_as_it_is_here(written, text):
    file = rule(written.format(text))
    fixes = [fix for each in found_in(file) for fix in each.fixes]
    assert fixes
    for fix in fixes:
        after = apply_fixes(file, [fix])
        assert not [each for each in found_in(after) if each.severity == "error"], after


@pytest.mark.parametrize(
    "expression",
    [
        *(written.format(other) for written in OF_TEXTS for other in NO_TEXTS),
        *('nvl(amount, "x") == "x"', "to_number(amount) > 1", "len(user.id, 1) > 1"),
    ],
)
def test_nothing_is_offered_of_another_value_and_it_is_said_why(expression):
    found = [each for each in found_in(rule(expression)) if each.severity == "error"]
    assert not any(each.fixes for each in found)
    assert any(each.help is not None for each in found)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("lower(user.email).length() > 3", "length(lower(user.email)) > 3"),
        ('lower(user.email) . contains("x")', 'lower(user.email) contains "x"'),
        ('(user.email).startsWith("x")', '(user.email) starts with "x"'),
        ("(user.email).length() > 3", "length(user.email) > 3"),
        ('left(upper("(" ), 1).lower() == "("', 'lower(left(upper("(" ), 1)) == "("'),
        ("amount.round(2) > 3", "round(amount, 2) > 3"),
        ("max(transactions.duration).abs() > 3", "abs(max(transactions.duration)) > 3"),
        ('lower(user.email) does not contain "x"', 'not lower(user.email) contains "x"'),
        (
            "user.id is missing or lower(user.email) does not match /x/",
            "user.id is missing or not lower(user.email) matches /x/",
        ),
    ],
)
def test_a_method_of_a_call_or_of_what_is_in_brackets_is_offered_as_it_is_here(written, meant):
    text = rule(written)
    (found,) = errors_in(text)
    assert apply_fixes(text, found.fixes) == rule(meant)
    assert errors_in(rule(meant)) == []


@pytest.mark.parametrize(
    "expression",
    [
        *("count(payments by user.id over 1h).length() > 3", 'round(amount).lower() == "x"'),
        *("user.email.round(2) > 1", "amount.abs(1) > 1", "(amount + 1).length() > 1"),
    ],
)
def test_no_method_is_offered_as_a_function_that_does_not_take_the_value(expression):
    found = errors_in(rule(expression))
    assert found
    assert not any(each.fixes for each in found)
    assert all(each.help is not None for each in found)


def test_what_is_offered_of_a_let_depends_on_the_let():
    text = (
        "rule r\n  use velocity\n  list l: string\n  let large = amount * 2\n"
        "  let mail = lower(user.email)\n"
        "  condition a when large.length() > 3 then deny\n"
        "  condition b when mail.length() > 3 then deny\n"
        '  condition c when payments_1h_per_card.lower() == "x" then deny\n'
        "  condition d when broken.length() > 3 then deny\n"
        "  let broken = mail.length()\n"
    )
    found = [each for each in found_in(text) if each.code == "foreign-word"]
    offered = ["", "write `length(mail)`", "", "write `length(broken)`", "write `length(mail)`"]
    assert ["".join(fix.title for fix in each.fixes) for each in found] == offered
    assert [each.help for each in found if not each.fixes] == [
        "`length` takes text, and this is a number",
        "`lower` takes text, and this is a number",
    ]


@pytest.mark.parametrize("uses", ["", "  use own\n"])
def test_a_name_of_definitions_that_are_not_used_says_which_they_are(uses):
    own = read_file(b"definitions own\n  let large = amount > 1000\n", KnownNames()).program
    text = f"rule r\n{uses}  condition c when payments_1h_per_card > 3 and lrge then deny\n"
    found = read_file(text.encode(), KnownNames(definitions={"own": own})).diagnostics
    told = "the definitions `velocity` have it: write `use velocity` above"
    assert next(each.help for each in found if each.code == "unknown-name") == told


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("user.id in blocked", "declare it: `list blocked: string`"),
        ('device.ip in ["10.0.0.0/8"]', "did you mean `device.ip_address`?"),
    ],
)
def test_a_name_that_is_written_too_short_is_told_in_full(expression, told):
    assert [each.help for each in errors_in(rule(expression))] == [told]


def test_a_field_of_an_event_type_is_none_of_the_payments():
    text = (
        'event e\n  field amount: string\n  metric m = count(events where amount.lower() == "x")\n'
    )
    assert [fix.title for each in found_in(text) for fix in each.fixes] == ["write `lower(amount)`"]


@pytest.mark.parametrize(
    "expression",
    [
        "any(transactions.status)",
        'any(payments.status == "declined" by user.id over 1h)',
        'any(transactions.status == "declined" where duration > 5000)',
    ],
)
def test_where_a_fix_would_leave_an_error_of_its_own_none_is_offered(expression):
    found = found_in(rule(expression))
    assert found
    assert not any(each.fixes for each in found)


CALLED = st.sampled_from([*AGGREGATES, "length", "abs", "coalesce", "lower"])
CLAUSES = st.sampled_from(["", " by user.id", " by user.id over 1h", ' where status == "declined"'])
ASKED = st.recursive(
    st.sampled_from(
        ["transactions", "payments", "transactions.duration", "payments.amount", "user.id", "1h"]
    ),
    lambda inner: st.one_of(
        st.builds("{}({}{})".format, CALLED, inner, CLAUSES),
        st.builds("({})".format, inner),
        st.builds("{} {} {}".format, inner, st.sampled_from(["+", ">", "=="]), inner),
        st.builds("{} is missing".format, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=examples(300), deadline=None)
@given(ASKED)
def test_every_fix_of_what_is_asked_of_records_removes_its_finding(expression):
    text = rule(expression)
    for each in found_in(text):
        for fix in each.fixes:
            assert each not in found_in(apply_fixes(text, [fix])), (each, fix)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("(age(payments by user.id)) is missing", "first(payments by user.id)"),
        (
            "((age(payments by user.id))) < 1h",
            "(first(payments by user.id) or ((age(payments by user.id))) < 1h)",
        ),
    ],
)
def test_a_bracket_around_an_age_is_no_part_of_what_is_first(written, meant):
    text = rule(written)
    (fix,) = [fix for each in found_in(text) for fix in each.fixes]
    assert apply_fixes(text, [fix]) == rule(meant)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_safe_fixes_add_no_error_and_leave_none_of_their_own(path):
    text = path.read_text()
    after = applied_safely(text, found_in)
    assert not any(fix.safe for each in found_in(after) for fix in each.fixes[:1])


@settings(max_examples=examples(100), deadline=None)
@given(st.text(alphabet="abc &|='\"!\n", max_size=60))
def test_safe_fixes_of_any_text_end_and_stay(text):
    once = applied_safely(text, found_in)
    assert applied_safely(once, found_in) == once


def test_fixes_that_touch_are_not_made_together():
    first = Fix("a", (Edit(Span(0, 2), "x"),))
    second = Fix("b", (Edit(Span(1, 3), "y"), Edit(Span(5, 5), "!")))
    third = Fix("c", (Edit(Span(4, 5), "z"),))
    assert apply_fixes("abcdef", [first, second, third]) == "xcdzf"


EDITS = st.builds(
    lambda start, length: Edit(Span(start, start + length), "x"),
    st.integers(0, 30),
    st.integers(0, 3),
)


@given(st.lists(st.builds(lambda edit: Fix("", (edit,)), EDITS), max_size=12))
def test_of_any_fixes_each_is_made_that_touches_none_before_it(fixes):
    text, made = "." * 40, []
    for fix in fixes:
        (new,) = fix.edits
        if all(new.span.end < old.start or old.end < new.span.start for old in made):
            made.append(new.span)
    assert apply_fixes(text, fixes).count("x") == len(made)
    left = len(text) - sum(end - start for start, end in made)
    assert apply_fixes(text, fixes).count(".") == left


def test_thousands_of_errors_are_fixed_in_a_few_readings():
    text = rule('user.id == "x"')
    text += "".join(f"  test 't{each}' given user.id = 'x' expect deny\n" for each in range(2000))
    readings = []

    def find(each: str):
        readings.append(each)
        return find_all(each, KnownNames())

    fixed_text = applied_safely(text, find)
    assert fixed_text == text.replace("'", '"')
    assert len(readings) == 3  # the quotes of the titles, those of the values, nothing more


def test_a_command_that_leaves_fixes_says_so(tmp_path):
    file = tmp_path / "shop.rule"
    file.write_text(rule(" or ".join(f"user.id = 'x{each}'" for each in range(100))))
    ended = CliRunner().invoke(main, ["check", "--fix", str(file)])
    assert "1 safe change can still be made: run it again" in ended.output


def test_the_command_writes_safe_fixes_and_says_where(tmp_path):
    file = tmp_path / "shop.rule"
    file.write_bytes(rule("type = 'verify'").replace("\n", "\r\n").encode())
    ended = CliRunner().invoke(main, ["check", "--fix", str(file)])
    assert (ended.exit_code, f"fixed {file}" in ended.output) == (0, True)
    assert file.read_bytes() == rule('type == "verify"').replace("\n", "\r\n").encode()


def test_fixes_are_in_json_as_places_and_replacements(tmp_path):
    file = tmp_path / "shop.rule"
    file.write_text(rule("type = 'verify'"))
    ended = CliRunner().invoke(main, ["check", "--json", str(file)])
    assert json.loads(ended.output)[0]["fixes"] == [
        {
            "title": "write `==`",
            "safe": True,
            "edits": [
                {"line": 2, "column": 25, "end_line": 2, "end_column": 26, "replacement": "=="}
            ],
        }
    ]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_quoted_text_is_read_as_it_was(text):
    file = parse(rule(f"user.id == {quoted(text)}")).file
    assert file is not None
    assert file.items[0].when.right.value == text


@pytest.mark.parametrize("written", [r'lower(user.id) == "A\\N"', r'lower(user.id) == "A\"N"'])
def test_a_fix_writes_a_text_with_its_escapes(written):
    (found,) = found_in(rule(written))
    text = apply_fixes(rule(written), found.fixes)
    assert text == rule(written.replace("A", "a").replace("N", "n"))
