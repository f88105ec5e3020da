"""`toll export`: what it says to a person and to a program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tollkeeper.cli import main
from tollkeeper.tests.engine.columns.test_export import three_days
from tollkeeper.tests.engine.offline.backtest.shop import open_shop


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")

    async def live() -> None:
        async with open_shop(made) as shop:
            await three_days(shop)

    asyncio.run(live())
    return made


def export(data: Path, target: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["export", "--to", str(target), "--data", str(data), *more])


def test_a_person_reads_what_was_written(data: Path, tmp_path: Path) -> None:
    first, second = export(data, tmp_path / "to"), export(data, tmp_path / "to")
    assert first.stderr == "shop: 6 payments of 3 days, up to entry 11; 3 days written\n"
    assert second.stderr == "shop: 6 payments of 3 days, up to entry 11; 0 days written\n"


def test_a_program_reads_json(data: Path, tmp_path: Path) -> None:
    done = msgspec.json.decode(export(data, tmp_path / "to", "--json").stdout)
    (shop,) = done["accounts"]
    assert (shop["payments"], shop["written"][0], done["removed"]) == (6, "2026-03-02", [])


def test_an_unknown_account_is_refused(data: Path, tmp_path: Path) -> None:
    ended = export(data, tmp_path / "to", "--account", "nobody")
    assert (ended.exit_code, ended.stderr) == (1, "account: there is no account `nobody`\n")
