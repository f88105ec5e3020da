from __future__ import annotations

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import build_contents
from tollkeeper.engine.lists.spec import ListSpec, TableSpec
from tollkeeper.engine.registry.environments import account_environment
from tollkeeper.engine.registry.settings import change_settings


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
