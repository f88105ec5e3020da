"""Every benchmark is run, asks one question, and has its place in docs/performance.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tollkeeper.bench import tables
from tollkeeper.bench.__main__ import PAGE, SHORT, fill_page
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.tests.bench.forked_bench import run_bench
from tollkeeper.tests.postgres import SERVER, own_database
from tollkeeper.tests.service.process import PATIENCE_S, Process

BENCH = Path(tables.__file__).parent
PARTS = {
    "__main__",
    "background",
    "cluster",
    "create",
    "tables",
    "servers",
    "load",
    "payments",
    "history",
    "large_index",
    "latencies",
}
"""What benchmarks share."""
COUNTS = {"curves", "rule_tokens"}
"""What counts and measures no time."""


SMALLEST = {
    "clients": (),
    "mutants": ("--every", "600", "--seconds", "0.1"),
    "postgres": ("--appends", "64", "--rounds", "1", "--server", SERVER),
    "request": ("--payments", "64", "--rounds", "1"),
    "retention": ("--entries", "300", "--server", SERVER),
}
"""Benchmarks that end within a second of processor time when they have little to do."""


def docstring(name: str) -> str:
    return ast.get_docstring(ast.parse((BENCH / f"{name}.py").read_text())) or ""


def test_every_module_of_the_suite_is_run() -> None:
    assert set(SHORT) == {file.stem for file in BENCH.glob("*.py")} - PARTS - COUNTS


@pytest.mark.parametrize("name", SHORT)
def test_a_benchmark_asks_one_question_and_tells_its_command(name: str) -> None:
    question, _, rest = docstring(name).partition("\n")
    assert question.endswith("?")
    assert rest.startswith(f"\n    python -m tollkeeper.bench.{name}")


@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_ends_with_its_tables(name: str, tmp_path: Path) -> None:
    if "--server" in SMALLEST[name]:
        with own_database():
            pass  # without a server it is skipped
    told = tmp_path / "told"
    assert Process(run_bench, name, SMALLEST[name], told).wait(PATIENCE_S) == 0, told.read_text()
    assert re.search(r"^\|.*\d.*\|$", told.read_text(), re.MULTILINE), told.read_text()


@pytest.mark.parametrize("name", ["machine", *SHORT])
def test_a_benchmark_has_one_place_in_the_page(name: str) -> None:
    page = PAGE.read_text()
    for mark in (f"<!-- bench:{name} -->\n", f"<!-- /bench:{name} -->\n"):
        assert page.count(mark) == 1
    assert page.index(f"<!-- bench:{name} -->") < page.index(f"<!-- /bench:{name} -->")


def test_tables_go_between_the_marks_and_the_words_around_them_stay() -> None:
    page = "Before.\n\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n\nAfter.\n"
    told = "Before.\n\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\n\nAfter.\n"
    assert fill_page(page, "a", "new") == told
    assert fill_page(told, "a", "new") == told


@pytest.mark.parametrize("page", ["", "<!-- bench:a -->", "<!-- /bench:a --> <!-- bench:a -->"])
def test_a_page_without_the_marks_is_not_written(page: str) -> None:
    with pytest.raises(ValueError, match="bench:a"):
        fill_page(page, "a", "new")


def test_a_table_in_a_pipe_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    show("Sizes", ["", "many", "some", "few"], [["a", 12345, 12.34, 0.123], ["b", "none", None, 0]])
    assert capsys.readouterr().out == (
        "**Sizes**\n\n"
        "|  | many | some | few |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| a | 12,345 | 12.3 | 0.12 |\n"
        "| b | none |  | 0 |\n\n"
    )


def test_a_target_says_whether_it_is_met(capsys: pytest.CaptureFixture[str]) -> None:
    show_targets(
        [Target("a", 2, at_most=2), Target("b", 2.01, at_most=2), Target("c", 1.0, at_least=1)]
    )
    rows = capsys.readouterr().out.splitlines()[4:7]
    assert rows == [
        "| a | 2 | ≤ 2 | yes |",
        "| b | 2.01 | ≤ 2 | no |",
        "| c | 1.00 | ≥ 1 | yes |",
    ]
