"""An export says what the journal says: every fact, state, read and label, and no more of it later."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from shutil import copytree
from typing import Any

import duckdb
import pyarrow.dataset
import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.engine.columns import days
from tollkeeper.engine.columns import export as exporting
from tollkeeper.engine.columns.configuration import CHANGE_SCHEMA, LIST_SCHEMA, WINDOW_SCHEMA
from tollkeeper.engine.columns.export import ExportSummary, export_columns
from tollkeeper.engine.columns.tables import LABEL_SCHEMA, payments_schema, states_schema
from tollkeeper.engine.columns.windows import ReadValues, reading_versions
from tollkeeper.engine.instants import DAY, from_microseconds, now
from tollkeeper.engine.journal import reads, retention, schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.engine.privacy.deletion import DeleteAccount
from tollkeeper.engine.privacy.erasure import EraseUser
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.publish.accounts import CreateAccount, CreateKey, SuspendAccount
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.past_states import recorded_changes
from tollkeeper.engine.stored_records import decode_decision, decode_recorded
from tollkeeper.tests.engine.offline.backtest.shop import NAME, START, Shop, open_shop
from tollkeeper.tests.engine.offline.backtest.test_same_as_live import an_eventful_evening

RULE = """
rule checkout
  let tries = count(payments by user.id over 1h)
  let spent = sum(payments.amount by user.id, currency over 1d)
  condition tries when tries > 2 then challenge
  condition spender when spent > 100 then deny
"""


def payment(number: int, user: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"p-{number}",
        "type": "purchase",
        "currency": "BRL",
        "amount": 10.25 * number,
        "method": {
            "type": "card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": f"{number:04}",
            },
        },
        "device": {"ip_address": "198.51.100.7", "headers": {"User-Agent": "curl/8", "Via": "a"}},
        "backend": {"ip_address": "10.0.0.1"},
        "user": {"id": user, "email": f"{user}@example.org"},
        "merchant": {"id": "m"},
        "metadata": {"basket": {"items": 3}, "new": True},
        "analyze": {"bot_behaviour": True, "rule": {"name": NAME}},
        **more,
    }


def declined() -> dict[str, Any]:
    attempt = {"status": "declined", "connector": {"id": "c", "response_code": "51"}, "duration": 8}
    return {"status": "declined", "transactions": [attempt]}


async def three_days(shop: Shop) -> None:
    """Two payments of two users on each day; the first day's first one is declined on the second."""
    await shop.publish(RULE)
    for day in range(3):
        shop.now = START_OF_DAYS + day * DAY
        for position, user in enumerate(("ana", "rui")):
            shop.now += 1_000_000
            await shop.create(payment(2 * day + position, user))
        if day == 1:
            await shop.update("p-0", declined())


START_OF_DAYS = int(START.timestamp()) * 1_000_000


def in_shop(folder: Path, work: Callable[[Shop], Awaitable[Any]], now: int | None = None) -> None:
    async def live() -> None:
        moment = now or START_OF_DAYS + 3 * DAY
        async with open_shop(folder, START_OF_DAYS if now is None else moment) as shop:
            await work(shop)

    asyncio.run(live())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    in_shop(made, three_days)
    return made


@pytest.fixture
def later(folder: Path) -> Callable[[Callable[[Shop], Awaitable[Any]]], None]:
    """Something happens in the shop on the fourth day."""
    return lambda work: in_shop(folder, work, START_OF_DAYS + 3 * DAY)


def export(folder: Path) -> ExportSummary:
    return export_columns(folder, folder.parent / "columns", None)


def written(folder: Path) -> tuple[str, ...]:
    (account,) = export(folder).accounts
    return account.written


def asked(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """What DuckDB answers; each table has its name."""
    with closing(duckdb.connect()) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for path in (folder.parent / "columns").glob("[a-z]*/"):
            files = f"{path}/**/*.parquet"
            connection.execute(
                f"CREATE VIEW {path.name} AS FROM read_parquet('{files}', union_by_name = true)"
            )
        found = connection.sql(query).to_arrow_table().columns
        return list(zip(*(column.to_pylist() for column in found), strict=True))


DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")


def test_a_payment_is_a_row_of_typed_columns(folder: Path) -> None:
    export(folder)
    (row,) = asked(
        folder,
        "SELECT amount, method.card.fingerprint, device.ip_address, device.headers['Via'],"
        " device.client.kind, backend.ip_address, metadata ->> '$.basket.items', timestamp,"
        " day, account FROM payments WHERE id = 'p-3'",
    )
    assert row == (
        Decimal("30.75"),
        "41111111-0003",
        "198.51.100.7",
        "a",
        "library",
        None,
        "3",
        datetime(2026, 3, 3, 8, 0, 2, tzinfo=UTC),
        date(2026, 3, 3),
        "shop",
    )


def test_a_state_holds_from_its_entry_to_that_of_the_next(folder: Path) -> None:
    export(folder)
    found = asked(
        folder,
        "SELECT s.status, transactions[1].connector.response_code, valid_from, valid_to, s.payment"
        " FROM states s WHERE id = 'p-0' ORDER BY valid_from",
    )
    (created, update) = found
    assert (created[0], update[0]) == ("initiated", "declined")
    assert (created[1], update[1]) == (None, "51")
    assert created[2] == created[4] == update[4]
    assert created[3] == update[2]
    assert update[3] is None


def test_a_window_has_a_column_and_the_catalogue_its_text(folder: Path) -> None:
    export(folder)
    texts = "SELECT text, column_name FROM windows WHERE kind = 'rule'"
    columns = dict(asked(folder, texts))
    tries = columns["count(payments by user.id over 1h)"]
    spent = columns["sum(payments.amount by user.id, currency over 1d)"]
    found = asked(
        folder, f"SELECT {tries}, {spent} FROM payments WHERE user.id = 'rui' ORDER BY id"
    )
    # The third day's payment is not a whole day after the second's.
    assert found == [(1, Decimal("10.25")), (1, Decimal("30.75")), (1, Decimal("51.25"))]


def entries(folder: Path, *kinds: Kind) -> Iterator[Entry]:
    with closing(schema.connect_for_reading(folder)) as connection:
        for batch in reads.replay_entries(connection, 1, 0, 0, None, kinds):
            yield from batch


def test_an_eventful_evening_is_exported_as_it_is_stored(tmp_path: Path) -> None:
    folder = copytree(an_eventful_evening(), tmp_path / "data")
    export(folder)
    rows = pyarrow.dataset.dataset(
        tmp_path / "columns" / "payments", format="parquet", partitioning="hive"
    )
    by_sequence = {row["sequence"]: row for row in rows.to_table().to_pylist()}
    stored = list(entries(folder, Kind.PAYMENT))
    changes = list(recorded_changes(entries(folder, Kind.CHANGE)))
    read = ReadValues(reading_versions(changes))
    types = {c.name: c.type for each in reading_versions(changes) for c in each.columns}
    assert len(stored) == len(by_sequence) > 900
    for entry in stored:
        row, decision = by_sequence[entry.sequence], decode_decision(entry.outcome or b"{}")
        sent = json.loads(entry.body)["payment"]
        assert row["id"] == entry.id
        assert row["user"] == (
            {"email": None, "id": None, **sent["user"]} if "user" in sent else None
        )
        assert row["amount"] == (Decimal(str(sent["amount"])) if "amount" in sent else None)
        assert row["decision"]["action"] == decision.action
        values = read.of(decision, entry.sequence)
        # Scorecard and rule may read one window.
        assert {*values.values()} == {*decision.reads}
        for name, value in values.items():
            scale = getattr(types[name], "scale", None)
            kept = row[name]
            if isinstance(kept, Decimal):
                kept = int(kept.scaleb(scale))
            elif isinstance(kept, datetime):
                kept = round((kept - from_microseconds(0)) / timedelta(microseconds=1))
            assert kept == value
    states = asked(folder, "SELECT valid_from, status, len(transactions) FROM states")
    assert {each[0]: each[1:] for each in states} == {
        entry.sequence: (known.status, len(known.transactions))
        for entry in entries(folder, Kind.PAYMENT, Kind.UPDATE)
        for known in [decode_recorded(entry.body).payment]
    }


def test_an_export_writes_the_days_in_which_something_is_new(
    folder: Path, later: Callable[..., None]
) -> None:
    assert written(folder) == DAYS
    assert written(folder) == ()
    later(lambda shop: shop.create(payment(9, "eva")))
    assert written(folder) == ("2026-03-05",)
    later(lambda shop: shop.update("p-2", declined()))
    assert written(folder) == ("2026-03-03",)
    (state,) = asked(folder, "SELECT status FROM states WHERE id = 'p-2' AND valid_to IS NULL")
    assert state == ("declined",)


def files_of(folder: Path, table: str) -> dict[str, int]:
    """The files of a table with their numbers on disk, which a file that is written again has anew."""
    paths = (folder.parent / "columns" / table).rglob("*.parquet")
    return {f"{path.parent.name}/{path.name}": path.stat().st_ino for path in paths}


def test_a_day_is_written_in_parts_of_which_those_with_something_new_are_written_again(
    folder: Path, later: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "PART_NUMBERS", 2)

    async def four_more(shop: Shop) -> None:
        for number in range(6, 10):
            await shop.create(payment(number, "eva"))

    later(four_more)
    export(folder)
    first = files_of(folder, "payments")
    assert len(first) > 5
    last = max(first)
    later(lambda shop: shop.create(payment(10, "eva")))
    export(folder)
    second = files_of(folder, "payments")
    assert {name: second[name] for name in first if name != last} == {
        name: number for name, number in first.items() if name != last
    }
    later(lambda shop: shop.update("p-7", declined()))
    export(folder)
    third = files_of(folder, "payments")
    assert sum(second[name] != third[name] for name in second) == 1
    found = asked(folder, "SELECT id FROM payments ORDER BY sequence")
    assert found == [(f"p-{number}",) for number in range(11)]
    (state,) = asked(folder, "SELECT status FROM states WHERE id = 'p-7' AND valid_to IS NULL")
    assert state == ("declined",)


def test_a_payment_that_waited_over_midnight_is_exported_from_a_journal_of_an_older_release(
    folder: Path, later: Callable[[Callable[[Shop], Awaitable[Any]]], None]
) -> None:
    """It has its number behind entries that arrived on the next day, and was looked for for ever."""

    async def after_midnight(shop: Shop) -> None:
        for number in range(1, 6):
            await shop.update(f"p-{number}", declined())
        await shop.create(payment(9, "ana"))

    later(after_midnight)
    with sqlite3.connect(folder / schema.DATABASE_FILE) as journal:
        before_midnight = START_OF_DAYS // DAY * DAY + 3 * DAY - 1
        journal.execute("UPDATE journal SET arrived = ? WHERE id = 'p-9'", (before_midnight,))
    export(folder)
    assert asked(folder, "SELECT count(*) FROM payments WHERE id = 'p-9'") == [(1,)]
    later(lambda shop: shop.update("p-9", declined()))
    export(folder)
    assert asked(folder, "SELECT count(*) FROM states WHERE id = 'p-9'") == [(2,)]


def test_a_label_is_known_from_its_entry_on(folder: Path, later: Callable[..., None]) -> None:
    export(folder)

    async def label(shop: Shop) -> None:
        for number, verdict in ((1, "unsure"), (2, "fraud"), (3, None)):
            said = Label("review", verdict, START_OF_DAYS + number, "ana", "because of Rui")  # type: ignore[arg-type]
            await set_label(shop.engine, shop.account, "p-1", said)

    before = (
        folder.parent / "columns/payments/account=shop/day=2026-03-02/part-0000000.parquet"
    ).stat()
    later(label)
    assert written(folder) == ("2026-03-02",)
    after = (
        folder.parent / "columns/payments/account=shop/day=2026-03-02/part-0000000.parquet"
    ).stat()
    assert before.st_ino == after.st_ino
    found = asked(folder, "SELECT id, label, source, valid_from, valid_to FROM labels ORDER BY 4")
    assert [each[:3] for each in found] == [("p-1", "unsure", "review"), ("p-1", "fraud", "review")]
    assert found[0][4] == found[1][3]
    assert found[1][4] is not None


def test_what_was_erased_goes_from_the_export(folder: Path, later: Callable[..., None]) -> None:
    export(folder)
    later(lambda shop: shop.do(EraseUser("shop", "rui")))
    assert written(folder) == DAYS
    found = asked(folder, "SELECT id, user, device, method.card.bin FROM payments ORDER BY id")
    assert [each[0] for each in found if each[1:] == (None, None, None)] == ["p-1", "p-3", "p-5"]
    tables = ("payments", "states", "labels", "lists", "changes", "windows")
    said = [str(asked(folder, f"FROM {table}")) for table in tables]
    assert not any("'rui'" in each or "rui@" in each for each in said)


def test_what_was_erased_goes_from_the_export_whenever_that_looked_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"

    async def pay(shop: Shop) -> None:
        await shop.create(payment(0, "ana"))

    async def decline(shop: Shop) -> None:
        await shop.update("p-0", declined())

    async def erase_and_export_between(shop: Shop) -> None:
        run, turn = shop.engine.journal.run, asyncio.Lock()

        async def run_then_export(work: Any) -> Any:
            async with turn:
                done = await run(work)
                await asyncio.to_thread(export, folder)
                return done

        with monkeypatch.context() as patched:
            patched.setattr(retention, "CHUNK", 1)
            patched.setattr(retention, "STEP_S", 0)
            patched.setattr(shop.engine.journal, "run", run_then_export)
            await shop.do(EraseUser("shop", "ana"))

    # Each service seals what it wrote, so that the update is told of by another seal.
    for day, work in enumerate((pay, decline, erase_and_export_between)):
        in_shop(folder, work, START_OF_DAYS + day * DAY)
    export(folder)
    cards = asked(folder, "SELECT method.card.bin FROM states")
    assert cards == [(None,), (None,)]


def test_a_day_that_is_not_sealed_yet_is_left_alone_until_something_in_it_is_erased(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    found: list[tuple[str, ...]] = []

    async def beside_the_service(shop: Shop) -> None:
        await three_days(shop)
        found.append(await asyncio.to_thread(written, folder))
        found.append(await asyncio.to_thread(written, folder))
        await shop.do(EraseUser("shop", "rui"))
        found.append(await asyncio.to_thread(written, folder))
        await shop.engine.journal.seal(at_least=1)
        found.append(await asyncio.to_thread(written, folder))
        await shop.do(EraseUser("shop", "ana"))
        found.append(await asyncio.to_thread(written, folder))

    in_shop(folder, beside_the_service)
    assert found == [DAYS, (), DAYS, (), DAYS]
    assert asked(folder, "SELECT count(*) FROM payments WHERE user.id IS NOT NULL") == [(0,)]


def test_a_day_whose_amendments_are_gone_is_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    found: list[tuple[str, ...]] = []

    async def beside_the_service(shop: Shop) -> None:
        await three_days(shop)
        found.append(await asyncio.to_thread(written, folder))
        await shop.do(EraseUser("shop", "rui"))
        await shop.engine.journal.expire(now() + 2 * DAY)
        found.append(await asyncio.to_thread(written, folder))
        found.append(await asyncio.to_thread(written, folder))

    in_shop(folder, beside_the_service)
    assert found == [DAYS, DAYS, ()]
    assert asked(folder, "SELECT count(*) FROM payments WHERE user.id = 'rui'") == [(0,)]


def test_no_key_and_no_author_is_exported(folder: Path, later: Callable[..., None]) -> None:
    later(lambda shop: shop.do(CreateKey("shop", ("payments",), "the till")))
    export(folder)
    changes = asked(folder, "SELECT change FROM changes")
    kinds = {json.loads(change)["change"]["type"] for (change,) in changes}
    assert kinds == {"account_created", "scorecard_shipped", "version_stored", "activated"}
    assert {json.loads(change)["by"] for (change,) in changes} == {""}


def test_what_was_purged_goes_from_the_export(folder: Path, later: Callable[..., None]) -> None:
    export(folder)

    async def purge(shop: Shop) -> None:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        await purge_account(shop.engine, shop.account)

    later(purge)
    assert "2026-03-02" in written(folder)
    assert {day for (day,) in asked(folder, "SELECT id FROM payments")} == {
        "p-2",
        "p-3",
        "p-4",
        "p-5",
    }
    assert not (folder.parent / "columns/payments/account=shop/day=2026-03-02").exists()
    assert written(folder) == ()


def test_an_account_that_is_deleted_goes_from_the_export(
    folder: Path, later: Callable[..., None]
) -> None:
    later(lambda shop: shop.do(CreateAccount("night")))
    assert {each.account for each in export(folder).accounts} == {"shop", "night"}

    async def delete(shop: Shop) -> None:
        await shop.do(SuspendAccount("shop"))
        await shop.do(DeleteAccount("shop"))

    later(delete)
    assert export(folder).removed == ("shop",)
    assert not list((folder.parent / "columns").glob("*/account=shop"))


def test_an_export_that_was_cut_off_is_finished_by_the_next(
    folder: Path, later: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = exporting.put_payments

    def cut_off(connection: Any, account: int, day: Any, *more: Any) -> None:
        put(connection, account, day, *more)
        if day.name == "2026-03-03/0000000":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(exporting, "put_payments", cut_off)
        with pytest.raises(KeyboardInterrupt):
            export(folder)
    assert asked(folder, "SELECT count(*), max(day)::VARCHAR FROM payments") == [(2, "2026-03-02")]
    later(lambda shop: shop.create(payment(9, "eva")))
    assert written(folder) == ("2026-03-03", "2026-03-04", "2026-03-05")
    assert asked(folder, "SELECT count(*) FROM payments") == [(7,)]


def test_a_folder_of_something_else_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "columns").mkdir()
    (tmp_path / "columns" / "letters.txt").touch()
    with pytest.raises(JournalError, match=r"holds `letters.txt` and is no export"):
        export(folder)


def test_the_export_of_another_journal_is_refused(folder: Path, tmp_path: Path) -> None:
    export(folder)
    other = tmp_path / "other"
    in_shop(other, three_days)
    with pytest.raises(JournalError, match="is an export of another journal"):
        export(other)


def test_an_account_that_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        export_columns(folder, tmp_path / "columns", "nobody")


def test_the_tables_have_these_columns(snapshot: SnapshotAssertion) -> None:
    """Whoever changes one gives the format its next number (layout.py)."""
    schemas = {
        "payments": payments_schema(()),
        "states": states_schema(),
        "labels": LABEL_SCHEMA,
        "windows": WINDOW_SCHEMA,
        "lists": LIST_SCHEMA,
        "changes": CHANGE_SCHEMA,
    }
    assert (
        "\n\n".join(
            f"{name}\n" + "\n".join(f"  {each.name}: {each.type}" for each in made)
            for name, made in schemas.items()
        )
        == snapshot
    )
