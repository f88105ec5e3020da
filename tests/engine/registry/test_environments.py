from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import build_contents
from tollkeeper.engine.lists.spec import ListSpec, TableSpec
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry import past_states
from tollkeeper.engine.registry.changes import decode_change
from tollkeeper.engine.registry.environments import PastEnvironments, account_environment
from tollkeeper.engine.registry.settings import change_settings
from tollkeeper.tests.engine.offline.backtest.shop import open_shop


def test_programs_read_lists_tables_rates_and_the_time_zone(registry):
    asked = {"time_zone": "America/Sao_Paulo", "rates": {"EUR": {"USD": "1.0832"}}}
    registry.record(change_settings(registry.account, asked))
    bins = TableSpec("prefix", {"country": "string"})
    contents = {
        "trusted": build_contents(ListSpec("string"), [ListEntry("ana")]),
        "bins": build_contents(bins, [ListEntry("4111", '["BR"]')]),
    }
    environment = account_environment(registry.account, contents)
    assert environment.lists["trusted"].contains("ana", 0)
    assert environment.tables["bins"].find("41111111", 0) == {"country": "BR"}
    assert environment.rates == {("EUR", "USD"): 10_832_000_000}
    assert environment.time_zone.key == "America/Sao_Paulo"
    assert set(environment.lists) == {"trusted"}
    assert set(environment.tables) == {"bins"}


@pytest.mark.anyio
async def test_earlier_rates_are_found_in_the_change_that_set_them_among_any_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    read = []

    def reads(entry):
        read.append(entry.sequence)
        return decode_change(entry)

    async with open_shop(tmp_path / "data") as shop:
        first = shop.engine.state.sequence
        held: dict[int, str | None] = {first: None}
        for price in ("0.18", "0.2"):
            await shop.do(ChangeSettings("shop", {"rates": {"BRL": {"USD": price}}}))
            held[shop.engine.state.sequence] = price
            await shop.do(ChangeSettings("shop", {"time_zone": f"Etc/GMT+{price[-1]}"}))
            held[shop.engine.state.sequence] = price
        monkeypatch.setattr(past_states, "decode_change", reads)
        account = shop.engine.state.accounts[shop.account]
        environments = PastEnvironments(shop.engine.journal, shop.engine.past_states, account)
        for sequence, price in held.items():
            rates = environments.at(sequence + 1).rates
            expected = {} if price is None else {("BRL", "USD"): round(float(price) * 10**10)}
            assert dict(rates) == expected
    assert read == list(account.rates_changed[:-1])
