"""However a file within the bounds is made, checking it takes work in proportion to its size.

Work is counted in calls of functions, Python's own included, so that no clock is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tollkeeper.grammar.checker import check
from tollkeeper.grammar.parser import MAX_ERRORS, MAX_FILE_BYTES, parse

MOST_CALLS_PER_BYTE = 180
SIZE = MAX_FILE_BYTES // 10
HEAD, TAIL = "rule r\ncondition c when ", " then deny\n"


def filled(part: Callable[[int], str], joined: str, size: int = SIZE) -> str:
    """Parts up to a size."""

    def parts() -> Iterator[str]:
        left = size
        for index in count():
            left -= len(part(index)) + len(joined)
            if left < 0:
                return
            yield part(index)

    return joined.join(parts())


def condition(part: Callable[[int], str], joined: str) -> str:
    return f"{HEAD}{filled(part, joined, SIZE - 60)}{TAIL}"


def conditions(part: Callable[[int], str]) -> str:
    lines = ["rule r", *(f"condition c{i} when {part(i)} then deny" for i in range(150))]
    return "\n".join(lines)


def members(first: int, step: int) -> str:
    return filled(lambda k: str(first + step * k), ",", 80)


def deep(part: Callable[[int], str], joined: str) -> str:
    inner = filled(part, joined, SIZE - 1000)
    return f"{HEAD}{'not (user.id is present and ' * 28}{inner}{')' * 28}{TAIL}"


def choices(part: Callable[[int], str]) -> str:
    said = filled(lambda i: f'"{i}"', " | ", SIZE // 2)
    asked = filled(part, " and ", SIZE // 2 - 60)
    return f"event e\nfield f: {said}\nmonitor m when {asked}\n"


def doubled(first: str, step: str) -> str:
    """Lets that each use the one before twice."""
    lets = [f"  let v{i} = {step.format(f'v{i - 1}')}" for i in range(1, 71)]
    return "\n".join(["rule r", f"  let v0 = {first}", *lets, "  condition c when v70 then deny"])


FILES = {
    "lets used twice by or": doubled("amount > 5", "{0} or {0}"),
    "lets used twice by and": doubled("amount > 5", "{0} and not {0}"),
    "lets used twice by presence": doubled("amount > 5", "{0} is missing or {0} is present"),
    "one value is not any of many": condition(lambda i: f"amount != {i}", " and "),
    "values without a comparison": condition(lambda i: f'"{i}"' if i else 'user.id == "x"', " or "),
    "lists over one value": conditions(lambda i: f"amount not in [{members(i, 7)}]"),
    "nested negations": deep(lambda i: f'user.id != "{i}"', " and "),
    "nested tests": deep(lambda i: f'(amount > {i} or user.id == "{i}")', " and "),
    "no choices": choices(lambda i: f'f != "x{i}"'),
    "long unknown values": "event e\nfield f: "
    f'"{"ab" * (SIZE // 4)}"\nmonitor m when f == "{"ba" * (SIZE // 4)}"\n',
}


@pytest.mark.parametrize("name", FILES)
def test_checking_takes_work_in_proportion_to_the_file(name, vocabulary, known):
    text = FILES[name]
    file = parse(text).file
    assert file is not None
    calls = 0

    def counting(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls > MOST_CALLS_PER_BYTE * len(text):
            raise AssertionError("more work than the file is worth")

    sys.setprofile(counting)
    try:
        check(file, text, vocabulary, known)
    finally:
        sys.setprofile(None)


def test_definitions_that_are_used_again_are_told_of_once_each(check_text, known):
    found = check_text("rule r\nuse cards\nuse cards\nuse cards", known).diagnostics
    assert [each.code for each in found if each.severity == "error"] == ["duplicate-name"] * 2


def test_checking_stops_after_many_errors(check_text):
    text = condition(lambda i: f"amout{i}", " or ")
    found = check_text(text).diagnostics
    assert [each.code for each in found] == ["unknown-name"] * MAX_ERRORS + ["too-many-errors"]
