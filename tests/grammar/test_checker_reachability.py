"""Reachability never warns wrongly: brute force over small domains agrees with each warning."""

from __future__ import annotations

from itertools import product

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tollkeeper.grammar.program import Rule
from tollkeeper.tests.examples import examples

VALUES = {
    "amount": (None, 0, 1, 1.5, 2, 3, 100),
    "user.id": (None, "a", "b", "z"),
    "merchant.country": (None, "BR", "DE", "US"),
    "device.client.consistent": (None, True, False),
}
WORLDS = [dict(zip(VALUES, values, strict=True)) for values in product(*VALUES.values())]
NUMBERS = ("0", "1", "1.5", "1.999", "2", "3")
ORDER = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compared(field, operator, literal, flipped):
    value = float(literal) if field == "amount" else literal.strip('"')
    text = f"{literal} {operator} {field}" if flipped else f"{field} {operator} {literal}"

    def outcome(world):
        found = world[field]
        if found is None:
            return None
        return ORDER[operator](*((value, found) if flipped else (found, value)))

    return text, outcome


def between(low, high):
    def outcome(world):
        found = world["amount"]
        return None if found is None else float(low) <= found <= float(high)

    return f"amount between {low} and {high}", outcome


def one_of(field, options, negated):
    text = f"{field} {'not in' if negated else 'in'} [{', '.join(options)}]"
    values = [option.strip('"') for option in options]

    def outcome(world):
        found = world[field]
        return None if found is None else (found in values) is not negated

    return text, outcome


def presence(field, state):
    def outcome(world):
        return (world[field] is None) is (state == "missing")

    return f"{field} is {state}", outcome


def boolean():
    return "device.client.consistent", lambda world: world["device.client.consistent"]


def negated(part):
    def outcome(world):
        found = part[1](world)
        return None if found is None else not found

    return f"not ({part[0]})", outcome


def joined(word, parts):
    decisive = word == "or"

    def outcome(world):
        found = [part[1](world) for part in parts]
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    return f" {word} ".join(f"({part[0]})" for part in parts), outcome


TEXTS = st.sampled_from(('"a"', '"b"', '"c"'))
COUNTRIES = st.sampled_from(('"BR"', '"DE"', '"US"'))
ATOMS = st.one_of(
    st.builds(
        compared,
        st.just("amount"),
        st.sampled_from(list(ORDER)),
        st.sampled_from(NUMBERS),
        st.booleans(),
    ),
    st.builds(compared, st.just("user.id"), st.sampled_from(["==", "!="]), TEXTS, st.booleans()),
    st.builds(between, st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    st.builds(one_of, st.just("user.id"), st.lists(TEXTS, min_size=1, max_size=3), st.booleans()),
    st.builds(
        one_of,
        st.just("merchant.country"),
        st.lists(COUNTRIES, min_size=1, max_size=3),
        st.booleans(),
    ),
    st.builds(presence, st.sampled_from(list(VALUES)), st.sampled_from(["missing", "present"])),
    st.builds(boolean),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda parts: st.one_of(
        st.builds(negated, parts),
        st.builds(joined, st.sampled_from(["and", "or"]), st.lists(parts, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)
RULES = st.lists(
    st.tuples(CONDITIONS, st.sampled_from(["allow", "challenge", "deny"]), st.booleans()),
    min_size=1,
    max_size=6,
)


def text_of(rule) -> str:
    lines = ["rule generated"]
    for index, ((text, _), action, named) in enumerate(rule):
        if named:
            lines.append(f"let l{index} = {text}")
        when = f"l{index}" if named else text
        lines.append(f"condition c{index} when {when} then {action}")
    return "\n".join(lines)


@settings(
    max_examples=examples(400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(RULES)
@example(
    [
        (presence("amount", "missing"), "allow", False),
        (presence("amount", "present"), "allow", True),
        (boolean(), "deny", False),
    ]
)
def test_a_condition_is_called_unreachable_only_when_it_is(check_text, rule):
    text = text_of(rule)
    checked = check_text(text)
    assert isinstance(checked.program, Rule), checked.diagnostics
    met = [{i for i, world in enumerate(WORLDS) if when[1](world)} for when, _, _ in rule]
    for found in checked.diagnostics:
        if found.code not in ("never-met", "covered", "deny-after-allow"):
            continue
        index = int(text[found.span.start + 1 : found.span.end])
        actions = ("allow",) if found.code == "deny-after-allow" else ("allow", "challenge", "deny")
        above = [met[i] for i in range(index) if rule[i][1] in actions]
        assert met[index] <= set().union(*above), text
        if found.code == "never-met":
            assert not met[index], text


@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(ATOMS)
def test_a_comparison_is_called_the_same_only_when_it_is(check_text, atom):
    checked = check_text(f"rule generated\ncondition c when {atom[0]} then deny")
    outcomes = {atom[1](world) for world in WORLDS}
    for found in checked.diagnostics:
        if found.code == "always-true":
            assert False not in outcomes
        if found.code == "never-true":
            assert True not in outcomes


def codes(checked) -> list[str]:
    return [found.code for found in checked.diagnostics]


def rule(*whens: str) -> str:
    lines = [f"condition c{i} when {when} then challenge" for i, when in enumerate(whens)]
    return "\n".join(["rule example", *lines])


def test_a_union_of_conditions_above_covers(check_text):
    found = check_text(
        rule("score < 0.5", "score >= 0.5", "score is missing", "user.id is present")
    )
    assert codes(found) == ["covered"]
    assert "`c0`, `c1` or `c2`" in found.diagnostics[0].message


def test_two_halves_of_a_range_cover_a_condition_on_two_subjects(check_text):
    text = rule(
        'user.id == "a" and score < 0.5',
        'user.id == "a" and score >= 0.5',
        'user.id == "a" and score > 0.1',
    )
    assert codes(check_text(text)) == ["covered"]


def test_numbers_between_two_hundredths_are_no_scores(check_text):
    assert codes(check_text(rule("score > 0.10 and score < 0.11"))) == ["never-met"]


def test_networks_are_ranges_of_addresses(check_text):
    text = rule(
        'device.ip_address in ["9.0.0.0/8"]',
        'device.ip_address in ["9.1.0.0/16", "9.2.0.1"]',
        'device.ip_address not in ["9.0.0.0/8"] and device.ip_address == "9.0.0.1"',
    )
    assert codes(check_text(text)) == ["covered", "never-met"]


def test_a_double_is_not_taken_apart_finer_than_it_is(check_text):
    text = rule("entropy(user.id) == 0.1 and entropy(user.id) == 0.10000000000000000001")
    assert codes(check_text(text)) == []


def test_what_is_not_understood_is_taken_as_a_whole(check_text):
    text = rule(
        'user.email contains "x" and score > 0.5',
        'user.email contains "x" and score > 0.6',
        'user.email contains "y" and score > 0.6',
        'not (user.email contains "z" or user.email is missing) and user.email contains "z"',
    )
    assert codes(check_text(text)) == ["covered", "never-met"]


def test_a_let_means_what_it_holds(check_text):
    text = "rule example\nlet high = score > 0.5\nlet value = score\n" + "\n".join(
        [
            "condition a when high then allow",
            "condition b when value > 0.7 then deny",
        ]
    )
    assert codes(check_text(text)) == ["deny-after-allow"]


def test_a_condition_past_the_effort_is_left_alone(check_text):
    many = " and ".join(f'(merchant.id != "{i}" or score > 0.{i % 10})' for i in range(60))
    assert codes(check_text(rule(many, many))) == ["covered"]
