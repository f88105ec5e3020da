"""What a file can take of the service for one payment or event is bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.offline.rule_files import known_beside, rule_files
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.checker.cost import MAX_COST, program_cost
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Definitions

RULES = Path(__file__).parents[2] / "rules"


def costly(text: str, known: KnownNames | None = None) -> list[Diagnostic]:
    found = read_file(text.encode(), known or KnownNames()).diagnostics
    assert not [each for each in found if each.severity == "error" and each.code != "too-costly"]
    return [each for each in found if each.code == "too-costly"]


def cost_of(text: str) -> int:
    program = read_file(text.encode(), KnownNames()).program
    assert program is not None
    assert not isinstance(program, Definitions)
    return program_cost(program, Numbers(program.lets), full_vocabulary()).total


def conditions(*tests: str) -> str:
    lines = (f"  condition c{number} when {test} then deny" for number, test in enumerate(tests))
    return "\n".join(["rule r", *lines])


def signals(*tests: str) -> str:
    lines = (f"  signal s{number} adds 1 when {test}" for number, test in enumerate(tests))
    return "\n".join(["scorecard s", "  baseline 0.03", *lines])


def monitors(*tests: str) -> str:
    lines = (f"  monitor m{number} when {test}" for number, test in enumerate(tests))
    return "\n".join(["event payment", *lines])


def lets(*tests: str) -> str:
    named = [f"  let l{number} = {test}" for number, test in enumerate(tests)]
    used = " or ".join(f"l{number}" for number in range(len(tests)))
    return "\n".join(["rule r", *named, f"  condition c when {used} then deny"])


MANY = [f"any(transactions where entropy(connector.id) > {bits / 100})" for bits in range(1, 101)]


@pytest.mark.parametrize("written", [conditions, signals, monitors, lets])
def test_many_questions_of_the_entropy_of_each_attempt_are_refused(written) -> None:
    (found,) = costly(written(*MANY))
    assert found.severity == "error"
    assert found.message.startswith("one payment could keep this file busy for ")


def test_an_event_s_monitors_are_bounded_too() -> None:
    text = "event e\n  field note: string\n" + "\n".join(
        f"  monitor m{each} when note matches /^.{{0,{each + 200}}}x/" for each in range(20)
    )
    (found,) = costly(text)
    assert found.message.startswith("one event could keep this file busy for")


def test_what_is_counted_for_history_is_bounded_too() -> None:
    series = [
        f"count(transactions by user.id over 1h where entropy(id) > {bits}) > 3"
        for bits in range(1, 20)
    ]
    assert costly(conditions(*series))


def test_the_error_stands_where_most_is_spent_also_when_definitions_hold_it() -> None:
    text = "definitions d\n  let odd = any(transactions where id matches /a.{0,900}b/)\n"
    program = read_file(text.encode(), KnownNames()).program
    assert isinstance(program, Definitions)
    rule = "rule r\n  use d\n  condition c when odd then deny"
    (found,) = costly(rule, KnownNames(definitions={"d": program}))
    assert rule[found.span.start : found.span.end] == "odd"


def test_what_is_written_twice_costs_little_more_than_once() -> None:
    one = 'entropy(device.headers["User-Agent"]) > 4'
    once = cost_of(conditions(one))
    assert cost_of(conditions(*(f"{one} and amount > {each}" for each in range(50)))) < 1.1 * once


def test_what_reads_no_attempt_is_not_paid_for_each_of_them() -> None:
    header = 'entropy(device.headers["X-Shop"])'
    plain = cost_of(conditions(f"{header} > 4"))
    inside = cost_of(conditions(f"any(transactions where duration > {header})"))
    assert inside < 1.1 * plain


def test_words_cost_little_and_repetitions_much() -> None:
    def price(pattern: str) -> int:
        return cost_of(conditions(f'device.headers["User-Agent"] matches /{pattern}/i'))

    assert price("headless|selenium|puppeteer") < MAX_COST / 100
    assert price("headless|selenium|puppeteer") * 10 < price("(head|sel|pup).{0,5}r")


SHIPPED = [each for each in rule_files([RULES]) if each.parent.name != "definitions"]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_ships_stays_far_below(path: Path) -> None:
    text = path.read_bytes()
    program = read_file(text, known_beside([RULES])).program
    assert program is not None
    assert not isinstance(program, Definitions)
    cost = program_cost(program, Numbers(program.lets), full_vocabulary()).total
    assert cost < MAX_COST / (4 if path.stem == "bot_behaviour" else 25)


def test_a_long_chain_of_lets_is_reckoned_without_running_deep() -> None:
    chain = ["let t0 = lower(user.email)", *(f"let t{i} = lower(t{i - 1})" for i in range(1, 490))]
    text = "rule r\n" + "\n".join(chain) + '\ncondition c when t489 == "a" then deny'
    assert costly(text)


def test_only_a_table_by_prefix_costs_a_probe_for_each_length() -> None:
    def price(by: str) -> int:
        asked = '  condition c when @t[user.id].c == "x" then deny'
        return cost_of(f"rule r\n  table t{by}: c: string\n{asked}")

    assert 10 * price("") < price(" by prefix")


def test_numbers_in_a_list_of_metadata_are_dear_and_the_list_is_read_once() -> None:
    def price(count: int, entry: str) -> int:
        return cost_of(
            conditions(*(f'{entry.format(each)} in metadata["a"]' for each in range(count)))
        )

    assert price(2, '"{}"') < price(1, "{}.5")
    assert price(2, "{}.5") < 1.5 * price(1, "{}.5")


def test_a_number_of_each_attempt_may_be_looked_for_in_metadata() -> None:
    asked = 'any(transactions where duration in metadata["a"])'
    assert not costly(conditions(asked, '"b" in metadata["b"]', "amount > 100"))
