"""`toll export`, and `toll backtest` over what it wrote."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tollkeeper.cli import main
from tollkeeper.tests.engine.columns.test_export import RULE, three_days
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


def backtest(data: Path, folder: Path) -> list[str]:
    candidate = folder / "checkout.rule"
    candidate.write_text(RULE.replace("> 100", "> 20"))
    given = ["backtest", str(candidate), "--account", "shop", "--since", "2026-03-01"]
    return [*given, "--summary", "--data", str(data)]


def test_a_backtest_over_columns_prints_what_one_over_the_data_does(
    data: Path, tmp_path: Path
) -> None:
    given = backtest(data, tmp_path)
    over_data = CliRunner().invoke(main, given)
    over_columns = CliRunner().invoke(main, [*given, "--columns", str(tmp_path / "to")])
    assert "challenge" in over_data.stdout or "deny" in over_data.stdout
    # Windows that were recorded need no history before the first payment.
    table, _, note = over_data.stdout.partition("\n> history begins")
    assert (over_columns.stdout, bool(note)) == (table, True)


def test_whoever_watches_sees_payments_first(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [*backtest(data, tmp_path), "--columns", str(tmp_path / "to")]
    assert CliRunner().invoke(main, given).stderr == ""
    watched = Console(stderr=True, force_terminal=True, no_color=True)
    monkeypatch.setattr("tollkeeper.api.terminal.commands.backtest.err", watched)
    at_once = CliRunner().invoke(main, given).stderr
    assert "would be" in at_once
    assert "p-5" in at_once


def test_an_export_is_asked_for_an_account(tmp_path: Path) -> None:
    history = tmp_path / "h.jsonl"
    history.touch()
    given = ["backtest", "a.rule", "--history", str(history), "--columns", str(tmp_path)]
    ended = CliRunner().invoke(main, given)
    assert (ended.exit_code, "give --account, too" in ended.stderr) == (2, True)


def test_a_backtest_brings_its_export_up_to_date(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "to"
    ended = CliRunner().invoke(main, [*backtest(data, tmp_path), "--columns", str(target)])
    assert ended.exit_code == 0
    assert export(data, target).stderr.endswith("0 days written\n")


def test_an_export_is_asked_where_its_journal_is_not(data: Path, tmp_path: Path) -> None:
    target, given = tmp_path / "to", backtest(data, tmp_path)
    export(data, target)
    before = sorted((path, path.stat().st_mtime_ns) for path in target.rglob("*.parquet"))
    over = [*given, "--columns", str(target), "--data"]
    here = CliRunner().invoke(main, [*over, str(data)])
    nowhere = CliRunner().invoke(main, [*over, str(tmp_path / "none")])
    assert nowhere.stdout == here.stdout
    other = tmp_path / "other"

    async def live() -> None:
        async with open_shop(other) as shop:
            await three_days(shop)

    asyncio.run(live())
    written = {path for path, _ in before if "payments" in path.parts}
    assert CliRunner().invoke(main, [*over, str(other)]).stdout == here.stdout
    after = {path: path.stat().st_mtime_ns for path in written}
    assert after == {path: at for path, at in before if path in written}


def test_a_folder_of_neither_is_refused(tmp_path: Path) -> None:
    given = [*backtest(tmp_path / "none", tmp_path), "--columns", str(tmp_path / "to")]
    ended = CliRunner().invoke(main, given)
    assert ended.exit_code == 1
    assert "is no export with an account `shop`, and `" in ended.stderr
    assert ended.stderr.endswith("none` holds no data to export\n")
