"""Nodes of two releases side by side: what the next one adds to the tables leaves this one as it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from shutil import copy

from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.postgres import schema
from tollkeeper.engine.journal.source import Database
from tollkeeper.tests.engine.journal.test_fencing import do
from tollkeeper.tests.service.next_release import next_toll
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving, toll, until
from tollkeeper.tests.service.test_nodes import RULE, clients_of, state_of, told, whole


def test_nodes_of_two_releases_share_a_journal_and_take_it_over_from_each_other(
    tmp_path: Path, on_database: str
) -> None:
    key = new_key(tmp_path / "0", "payments", "rules", "admin")
    (tmp_path / "gate.rule").write_text(RULE)
    published = toll(tmp_path / "0", "publish", str(tmp_path / "gate.rule"), "--account", "shop")
    assert published.returncode == 0
    met: list[str | None] = []

    def pay_at_both(owner: Running, other: Running) -> None:
        until(lambda: whole(on_database), 2)
        assert [state_of(tmp_path, each) for each in (owner, other)] == ["owns", "follows"]
        with clients_of(key, (owner, other)) as shop:
            for number in range(len(met), len(met) + 2):
                met.append(shop.pay(number % 2, f"p{number}"))
                shop.update(number % 2, f"p{number}")

    with ExitStack() as stack:

        def start(number: int, *release: Callable[[list[str]], None]) -> Running:
            own = tmp_path / str(number)
            own.mkdir(exist_ok=True)
            if number:
                copy(tmp_path / "0" / KEY_FILE, own)
            return stack.enter_context(serving(own, (), *release))

        older = start(0)
        newer = start(1, next_toll)
        pay_at_both(older, newer)
        end(older)
        older = start(0)
        pay_at_both(newer, older)
        end(newer)
        pay_at_both(older, start(1, next_toll))
    assert met == [None, "young", "young", "often", "often", "often"]
    kept = [each[1] for each in told(Database(on_database, tmp_path / "0"))]
    assert kept == [f"p{number}" for number in range(6) for _ in range(2)]
    assert do(on_database, "SELECT version FROM tollkeeper_tables") == [(schema.NEWEST_TABLES + 1,)]


def end(node: Running) -> None:
    node.process.terminate()
    assert node.process.wait(PATIENCE_S) == 0
