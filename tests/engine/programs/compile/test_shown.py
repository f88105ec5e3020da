"""What an author wrote is shown on one line as it was meant."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.compile.shown import one_line


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("amount > 5\n    and score > 0.5", "amount > 5 and score > 0.5"),
        ('user.id in [\n  "a",\n  "b"\n]', 'user.id in ["a", "b"]'),
        ("(   a\n  or  b )", "(a or b)"),
        ("amount > 5  # large\n  # very\n  and b", "amount > 5 and b"),
        ("a # it's \"large\n  and b", "a and b"),
        (r'user.id == "a  \"# b"  and c', r'user.id == "a  \"# b" and c'),
        ("user.email matches\n  /a  #b[/]i and c", "user.email matches /a  #b[/]i and c"),
    ],
)
def test_only_breaks_comments_and_the_space_between_tokens_are_left_out(written, shown):
    assert one_line(written) == shown


def test_an_expression_over_ever_so_many_lines_is_read_once():
    assert one_line("a and" + "\n" * 200_000 + "b") == "a and b"
    assert one_line("a and" + " " * 200_000 + "b") == "a and b"
    assert one_line("a and " + "#\n" * 100_000 + "b") == "a and b"
