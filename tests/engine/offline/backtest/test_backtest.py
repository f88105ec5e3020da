"""What a backtest says: counted once each, with money, labels and final statuses."""

from __future__ import annotations

import asyncio
import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tollkeeper.api.terminal.backtest_page import backtest_page
from tollkeeper.api.terminal.backtest_words import summary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.offline.backtest.backtest import backtest_account, backtest_program
from tollkeeper.engine.offline.backtest.files import HistoryError, backtest_files
from tollkeeper.engine.offline.backtest.report import UNRECORDED, FirstChange, Report
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.programs import encode_program
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import EventType, Rule
from tollkeeper.tests.engine.offline.backtest.shop import NAME, START, evening, open_shop

DAY = 86_400_000_000
ALL = (0, to_microseconds(START) + DAY)
RULE = """
rule checkout
  list blocked: string
  condition blocked_card "A card we know" when method.card.fingerprint in @blocked then deny
  condition again when count(payments by user.id over 1h) > 2 then challenge
  condition likely_bot when score >= 0.8 then deny
  otherwise allow
"""


class Page(SingleFileSnapshotExtension):
    file_extension = "html"
    _write_mode = WriteMode.TEXT


def rule(text: str = RULE) -> Rule:
    program = read_file(text.encode(), KnownNames()).program
    assert isinstance(program, Rule)
    return program


def payment(number: int, minute: int, amount: float, **more: Any) -> dict[str, Any]:
    return {
        "id": f"p-{number}",
        "type": "purchase",
        "currency": "BRL" if number % 3 else "USD",
        "amount": amount,
        "timestamp": f"2026-03-02T09:{minute:02}:00Z",
        "method": {
            "type": "card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": "41111111",
                "last_four": f"{number:04}",
            },
        },
        "user": {"id": "u-1" if number < 5 else f"u-{number}"},
        "merchant": {"id": "north" if number % 2 else "south"},
        **more,
    }


def decided(action: str, score: float, condition: str | None = None) -> dict[str, Any]:
    return {"action": action, "rule": "checkout", "condition": condition, "score": score}


def lines() -> list[dict[str, Any]]:
    return [
        {"payment": payment(1, 0, 10), "decision": decided("allow", 0.1)},
        {"payment": payment(2, 1, 20.5), "decision": decided("allow", 0.2)},
        {"payment": payment(3, 2, 30), "decision": decided("allow", 0.3)},
        {"payment": payment(4, 3, 40.25), "decision": decided("challenge", 0.4, "again")},
        {
            "update": {
                "id": "p-3",
                "status": "succeeded",
                "transactions": [
                    {"status": "succeeded", "connector": {"id": "c", "response_code": "00"}}
                ],
            }
        },
        {"list": "blocked", "entries": [{"value": "41111111-0006"}]},
        {"payment": payment(5, 5, 50), "decision": decided("deny", 0.9, "old_condition")},
        {"payment": payment(6, 6, 60), "decision": decided("allow", 0.1)},
        {"payment": payment(7, 7, 70), "decision": decided("allow", 0.1)},
    ]


def written(folder: Path, history: list[dict[str, Any]]) -> Path:
    path = folder / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in history))
    return path


def tried(path: Path, labels: dict[str, str] | None = None, text: str = RULE) -> Report:
    return backtest_files([path], rule(text), {}, 0, labels or {}, lambda _share: None)


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return tried(written(tmp_path, lines()), {"p-3": "genuine", "p-6": "fraud"})


def test_a_report_counts_what_would_change(report: Report, snapshot: SnapshotAssertion) -> None:
    assert msgspec.to_builtins(report) == snapshot


def test_a_page_tells_it_to_a_manager(report: Report, snapshot: SnapshotAssertion) -> None:
    assert backtest_page(report) == snapshot(extension_class=Page)


def test_a_summary_fits_into_a_pull_request(report: Report, snapshot: SnapshotAssertion) -> None:
    assert "\n".join(summary(report)) == snapshot


def test_a_page_shows_hostile_text_as_text(tmp_path: Path) -> None:
    history = lines()
    history[2]["payment"]["merchant"]["id"] = "<script>alert(1)</script>"
    assert "<script" not in backtest_page(tried(written(tmp_path, history), {"p-3": "<img>"}))


def test_a_status_is_the_last_one_known(report: Report) -> None:
    (succeeded,) = (each for each in report.statuses if each.value == "succeeded")
    assert [(each.was, each.now, each.payments) for each in succeeded.moved] == [
        ("allow", "challenge", 1)
    ]


def test_a_payment_is_counted_once_however_it_is_cut(report: Report) -> None:
    total = report.payments.payments
    assert total == 7
    assert sum(each.payments for each in report.actions) == total
    assert sum(each.payments for each in report.merchants) == total
    assert sum(each.payments for each in report.labels) == total
    assert sum(each.was.payments for each in report.conditions) == total
    assert sum(each.now.payments for each in report.conditions) == total
    assert sum(each.payments for each in report.changes) == report.changed.payments


@pytest.fixture
def undecided(tmp_path: Path) -> Report:
    history = [{key: value for key, value in line.items() if key != "decision"} for line in lines()]
    return tried(written(tmp_path, history), {"p-3": "genuine", "p-6": "fraud"})


def test_without_recorded_decisions_it_tells_what_would_be_decided(
    undecided: Report, snapshot: SnapshotAssertion
) -> None:
    assert undecided.compared.payments == undecided.changed.payments == 0
    assert "\n".join(summary(undecided)) == snapshot


def test_without_recorded_decisions_a_page_tells_what_would_be_decided(
    undecided: Report, snapshot: SnapshotAssertion
) -> None:
    assert backtest_page(undecided) == snapshot(extension_class=Page)


def test_without_recorded_decisions_every_payment_is_counted_once(undecided: Report) -> None:
    for parts in (undecided.decided, undecided.merchants, undecided.labels, undecided.statuses):
        assert sum(each.payments for each in parts) == 7
    assert sum(each.now.payments for each in undecided.conditions) == 7
    assert {each.was for each in undecided.actions} == {UNRECORDED}


def test_payments_without_a_recorded_decision_are_told_apart(tmp_path: Path) -> None:
    history = lines()
    del history[1]["decision"]
    report = tried(written(tmp_path, history))
    assert (report.payments.payments, report.compared.payments, report.changed.payments) == (
        7,
        6,
        3,
    )
    assert [(each.now.action, each.payments) for each in report.decided] == [("allow", 1)]
    assert "no decision is recorded of 1 payment: what they would get is told apart" in report.notes


def test_a_rule_that_no_payment_would_have_got_is_told(tmp_path: Path) -> None:
    history = lines()
    for line in history:
        if "payment" in line:
            line["payment"]["analyze"] = {"bot_behaviour": False}
    report = tried(written(tmp_path, history))
    assert "no payment of this time would have got `checkout`" in report.notes


def test_a_history_that_begins_too_late_is_told(report: Report) -> None:
    (note,) = (each for each in report.notes if each.startswith("history begins"))
    assert note == (
        "history begins at 2026-03-02T09:00:00Z: windows of 1h are whole for payments from"
        " 2026-03-03T11:00:00Z on, as some may come a day late"
    )


def test_a_rule_that_reads_decisions_is_told_of_them(tmp_path: Path) -> None:
    text = """rule checkout
      condition denied when count(payments by user.id over 1h where decision.action == "deny") > 0
        then deny"""
    report = tried(written(tmp_path, lines()), text=text)
    assert any(note.startswith("`checkout` reads `decision`") for note in report.notes)


def test_rows_of_csv_say_what_lines_of_json_say(tmp_path: Path) -> None:
    history = [line for line in lines() if "payment" in line]
    path = tmp_path / "history.csv"
    rows = [flat(line["payment"]) | flat(line["decision"], "decision.") for line in history]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, dict.fromkeys(name for row in rows for name in row))
        writer.writeheader()
        writer.writerows(rows)
    assert tried(path) == tried(written(tmp_path, history))


def test_rows_of_parquet_say_what_lines_of_json_say(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    history = [line for line in lines() if "payment" in line]
    path = tmp_path / "history.parquet"
    rows = [{**line["payment"], "decision": line["decision"]} for line in history]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert tried(path) == tried(written(tmp_path, history))


def test_amounts_of_parquet_may_be_decimals(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    history = [line for line in lines() if "payment" in line]
    path = tmp_path / "history.parquet"
    rows = [
        {**paid, "amount": Decimal(f"{paid['amount']:.2f}"), "decision": line["decision"]}
        for line in history
        for paid in [line["payment"]]
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert tried(path) == tried(written(tmp_path, history))


def test_a_time_of_parquet_within_a_microsecond_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "history.parquet"
    times = pyarrow.array([1_748_736_000_000_000_001], pyarrow.timestamp("ns", "UTC"))
    parquet.write_table(pyarrow.table({"timestamp": times}), path)
    with pytest.raises(HistoryError, match=r"history\.parquet"):
        tried(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("h.jsonl", '{"payment": {}}\n', "h.jsonl:1: `payment.type`"),
        ("h.jsonl", "", "holds no payments"),
        ("h.csv", "id,amount\np-1,ten\n", "h.csv:2: `amount` can't be read: ten"),
        ("h.csv", "id,metadata\np-1,{\n", "h.csv:2: `metadata` can't be read: {"),
        ("h.parquet", "no parquet", "can't be read"),
        ("h.csv", "device,device.ip_address\nx,203.0.113.7\n", "column `device` has a value"),
        ("h.csv", "id,type\np-1,purchase\n", "h.csv, row 1: `payment.currency`"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_its_place(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(HistoryError) as raised:
        tried(path)
    assert message in str(raised.value)


def test_a_second_payment_of_an_id_is_told_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, [{"payment": payment(1, 0, 10)}, {"payment": payment(1, 1, 10)}])
    with pytest.raises(HistoryError, match=r"\.jsonl:2: there is a payment `p-1` already"):
        tried(path)


LOGIN = b"""event login
  field user: string required
  metric tries = count(events by user over 1h)"""
READS_LOGINS = b"rule checkout condition tried when events.login.tries[user.id] > 1 then deny"


def test_events_of_a_file_count_for_a_rule_that_reads_their_metrics(tmp_path: Path) -> None:
    login = read_file(LOGIN, KnownNames()).program
    assert isinstance(login, EventType)
    program = read_file(READS_LOGINS, KnownNames(events={"login": login})).program
    assert isinstance(program, Rule)

    def happened(user: str, at: str) -> dict[str, Any]:
        return {"event": {"type": "login", "timestamp": at, "data": {"user": user}}}

    history = [
        happened("u-1", "2026-03-02T08:30:00Z"),
        {"payment": payment(1, 0, 10), "decision": decided("allow", 0.1)},
        happened("u-1", "2026-03-02T09:00:00Z"),
        happened("u-2", "2026-03-02T09:00:00Z"),
        {"event": {"type": "unread", "timestamp": "2026-03-02T09:00:00Z"}},
        {"payment": payment(2, 1, 10), "decision": decided("allow", 0.1)},
        {"payment": payment(3, 31, 10), "decision": decided("allow", 0.1)},
    ]
    path = written(tmp_path, history)
    report = backtest_files([path], program, {"login": login}, 0, {}, lambda _share: None)
    (change,) = report.changes
    assert [each.id for each in change.examples] == ["p-2"]

    path = written(tmp_path, [{"event": {"type": "login", "data": {}}}])
    with pytest.raises(HistoryError, match=r"\.jsonl:1: `event\.data\.user`: `user` is required"):
        backtest_files([path], program, {"login": login}, 0, {}, lambda _share: None)


class Told(list[Any]):
    """What a job tells before its end."""

    def __call__(self, share: float, /) -> None:
        self.append(share)

    def show(self, found: Any, /) -> None:
        self.append(found)


def test_a_job_shows_the_first_payment_of_each_change_as_soon_as_it_is_decided(
    tmp_path: Path,
) -> None:
    async def live() -> None:
        async with open_shop(tmp_path) as shop:
            for item in list(evening(seed=2))[:60]:
                await shop.receive(item, rule=None)

    asyncio.run(live())
    told = Told()
    report = backtest_program(told, tmp_path, "shop", encode_program(rule()), ALL)
    shown = [each for each in told if isinstance(each, FirstChange)]
    assert told[: len(shown)] == shown
    assert told[-1] == 1.0
    assert {(each.was, each.now) for each in shown} == {
        (each.was, each.now) for each in report.changes
    }
    latest = {(each.was, each.now): each.examples[0].at for each in report.changes}
    assert all(each.example.at <= latest[each.was, each.now] for each in shown)


def test_a_payment_that_arrived_when_the_period_was_over_is_not_counted(tmp_path: Path) -> None:
    arrived: list[int] = []

    async def live() -> None:
        async with open_shop(tmp_path) as shop:
            for item in list(evening(seed=2))[:60]:
                await shop.receive(item, rule=None)
                if "payment" in item.body:
                    arrived.append(shop.now)

    asyncio.run(live())
    until = arrived[len(arrived) // 2]
    report = backtest_account(tmp_path, "shop", rule(), (0, until), {}, lambda _share: None)
    assert report.payments.payments == sum(at <= until for at in arrived)


def test_a_new_rule_is_tried_on_every_payment_of_the_account(tmp_path: Path) -> None:
    async def live() -> int:
        async with open_shop(tmp_path) as shop:
            items = list(evening(seed=2))[:60]
            for item in items:
                await shop.receive(item, rule=None)
            return sum("payment" in item.body for item in items)

    count = asyncio.run(live())
    shares: list[float] = []
    report = backtest_account(tmp_path, "shop", rule(), ALL, {}, shares.append)
    assert report.payments.payments == count
    assert shares[-1] == 1.0
    assert any(note.startswith(f"no rule `{NAME}` was ever published") for note in report.notes)


def flat(value: dict[str, Any], above: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, item in value.items():
        row |= flat(item, f"{above}{name}.") if isinstance(item, dict) else {above + name: item}
    return row


def test_of_several_files_the_one_with_the_bad_line_is_told(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = written(tmp_path / "first", [{"payment": payment(1, 0, 10)}])
    second = written(tmp_path / "second", [{"payment": payment(1, 1, 10)}])
    with pytest.raises(HistoryError) as raised:
        backtest_files([first, second], rule(RULE), {}, 0, {}, lambda _share: None)
    assert str(raised.value).startswith(f"{second}:1: ")
