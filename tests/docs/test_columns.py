"""Each query of docs/columns.md runs on an export as it stands there."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from sqlglot import exp, parse_one
from syrupy.assertion import SnapshotAssertion

from tollkeeper.cli import main
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.columns.layout import COLUMNS_FORMAT
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.tests.engine.columns.test_export import RULE, START_OF_DAYS, payment, three_days
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop

PAGE = Path(__file__).parents[2] / "docs" / "columns.md"
QUERIES = [
    (title, query)
    for title, query in re.findall(
        r"\*\*([^*]+)\*\*[^`*]*(?:`[^`\n]+`[^`*]*)*```sql\n(.*?)```", PAGE.read_text(), re.DOTALL
    )
]


async def labelled_days(shop: Shop) -> None:
    await three_days(shop)
    card = payment(0, "ana")["method"]["card"] | {"bin": "55554444"}
    for number in range(10, 13):
        shop.now += 60_000_000
        await shop.create(payment(number, "eva", method={"type": "card", "card": card}))
    said = [
        ("p-0", "review", "unsure"),
        ("p-0", "chargeback", "fraud"),
        ("p-0", "review", "legitimate"),
    ]
    said += [
        ("p-1", "review", "legitimate"),
        ("p-10", "import", "fraud"),
        ("p-11", "review", "unsure"),
    ]
    for id_, source, verdict in said:
        label = Label(source, verdict, START_OF_DAYS, "ana")  # type: ignore[arg-type]
        await set_label(shop.engine, shop.account, id_, label)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")

    async def live() -> None:
        async with open_shop(folder / "data") as shop:
            await labelled_days(shop)

    asyncio.run(live())
    export_columns(folder / "data", folder / "columns", None)
    return folder


def of_tables(node: exp.Expression) -> exp.Expression:
    """A table of its own in the place of the files that are read."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.ReadParquet):
        return node
    made = exp.to_table(node.this.expressions[0].this.split("/")[1])
    made.set("alias", node.args.get("alias"))
    return made


@pytest.mark.parametrize("dialect", ["BigQuery", "ClickHouse"])
def test_the_page_has_a_query_as_the_library_writes_it(dialect: str) -> None:
    query = parse_one(dict(QUERIES)["Fraud rate by BIN"], read="duckdb").transform(of_tables)
    written = query.sql(dialect.lower(), pretty=True)
    assert f"{dialect}:\n\n```sql\n{written}\n```\n" in PAGE.read_text(), written


def test_the_analysts_loop_says_what_the_page_shows(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(export)
    page = PAGE.read_text().partition("### The analyst's loop")[2]
    (text,) = re.findall(r"```rule\n(.*?)```", page, re.DOTALL)
    assert text == RULE.lstrip()
    (export / "checkout.rule").write_text(text)
    loops = re.findall(
        r"```console\n\$ sed -i '(.*?)' (.*?)\n\$ toll (.*?)\n(.*?)```", page, re.DOTALL
    )
    assert len(loops) == 2
    for change, file, command, shown in loops:
        old, new = re.fullmatch(r"s/(.*)/(.*)/", change).groups()  # type: ignore[union-attr]
        rule = Path(file)
        rule.write_text(rule.read_text().replace(old, new))
        said = CliRunner().invoke(main, [*command.split(), "--data", "data"])
        assert said.exit_code == 0, said.output
        found = re.sub(r"to \d{4}-\d\d-\d\d:", "to 2026-03-31:", said.stdout)
        assert [each.rstrip() for each in found.splitlines()] == shown.splitlines(), found


def test_the_page_has_the_number_of_the_format() -> None:
    assert f"The format has a number, {COLUMNS_FORMAT}," in PAGE.read_text()


def test_the_page_has_queries() -> None:
    assert [title for title, _ in QUERIES] == [
        "What a decision read",
        "Fraud rate by BIN",
        "What became of each decision",
        "Overlap of conditions",
        "How long a final status takes",
        "A network's payments by day",
    ]


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=[title for title, _ in QUERIES])
def test_a_query_of_the_page_answers(
    title: str,
    query: str,
    export: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(export)
    with closing(duckdb.connect()) as connection:
        found: Any = connection.execute(query)
        names = [column[0] for column in found.description]
        rows = [tuple(map(str, row)) for row in found.fetchall()]
    assert [tuple(names), *rows] == snapshot
