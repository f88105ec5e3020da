"""40 rules that others have published can be written, and docs/coming-from.md says how long they get."""

from __future__ import annotations

from tollkeeper.bench.rule_tokens import PAGE, PUBLISHED, published, tokens
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule


def test_each_published_rule_is_a_condition_of_a_file_without_errors() -> None:
    program = read_file(PUBLISHED.read_bytes(), KnownNames()).program
    assert isinstance(program, Rule)
    rules, _ = published()
    assert len(rules) == len(program.conditions) == 40


def test_the_page_tells_the_measured_ratio() -> None:
    rules, lets = published()
    theirs, ours = (sum(map(tokens, each)) for each in zip(*rules, strict=True))
    ours += sum(map(tokens, lets))
    assert f"{theirs} tokens there, {ours} here" in PAGE.read_text()
    assert ours / theirs <= 1.3
