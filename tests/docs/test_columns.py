"""Each query of docs/columns.md runs on an export as it stands there."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.tests.engine.columns.test_export import START_OF_DAYS, payment, three_days
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
