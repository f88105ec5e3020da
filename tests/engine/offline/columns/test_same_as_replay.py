"""Live, a replay of the journal and an export say the same of every payment."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.columns import days
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.facts.fields_read import facts_decoder
from tollkeeper.engine.instants import DAY, HOUR, to_microseconds
from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.offline.backtest.backtest import backtest_account, candidate_of
from tollkeeper.engine.offline.backtest.candidate import PastDecision, Situation, outcome_of
from tollkeeper.engine.offline.backtest.replay import ReplayedPayment, try_candidate
from tollkeeper.engine.offline.backtest.stored import account_now, stored_history
from tollkeeper.engine.offline.columns import backtest as over_columns
from tollkeeper.engine.offline.columns import count_windows as windows_module
from tollkeeper.engine.offline.columns.backtest import (
    NotExportedError,
    backtest_columns,
    backtest_newest,
)
from tollkeeper.engine.offline.columns.compare_rows import outcomes_of
from tollkeeper.engine.offline.columns.count_windows import (
    WindowsAsked,
    WindowsPart,
    count_part,
    group_windows,
    join_parts,
    plan_of,
    spans_at,
    split_windows,
    start_of,
)
from tollkeeper.engine.offline.columns.decide_rows import decide_rows
from tollkeeper.engine.offline.columns.exported import ExportedHistory, open_export
from tollkeeper.engine.offline.columns.happened import make_happened
from tollkeeper.engine.offline.columns.rows_asked import ColumnsAsked, ask_rows
from tollkeeper.engine.offline.columns.score_rows import UNSURE, score_bounds, score_rows
from tollkeeper.engine.offline.columns.seen import lacking_windows, make_concerned, make_seen
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.functions import score
from tollkeeper.engine.programs.load import shipped_program
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.publish.change_lists import PutEntries, RemoveEntries
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.stored_records import decode_decision
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule, Scorecard
from tollkeeper.tests.engine.happenings import happen, payments, steps
from tollkeeper.tests.engine.offline.backtest.shop import START, Shop, open_shop
from tollkeeper.tests.engine.offline.backtest.test_backtest import rule
from tollkeeper.tests.engine.offline.backtest.test_same_as_live import (
    an_eventful_evening,
    stored_rule,
)

_OUTCOMES = f"SELECT id, now_action, now_condition FROM ({outcomes_of('decided')})"
HISTORIES = int(os.environ.get("TOLLKEEPER_HISTORIES", "2"))
COMPARED: Counter[str] = Counter()
"""How much was compared, by what."""


@pytest.fixture(scope="module", autouse=True)
def counts() -> Iterator[None]:
    """With `-s`, how much was compared is told at the end."""
    yield
    sys.stdout.writelines(f"\n{count:,} {what}" for what, count in COMPARED.items())


Outcomes = dict[str, tuple[str | None, str | None]]
"""The action and the condition of each payment, by its id."""


def quiet(_share: float) -> None:
    pass


def of_journal(folder: Path, program: Rule | Scorecard) -> Outcomes:
    """What a replay of the journal decides."""
    return {each.id: each.now[::2] for each in replay_of(folder, program)}


def replay_of(folder: Path, program: Rule | Scorecard) -> list[ReplayedPayment]:
    account = account_now(folder, "shop")
    with closing(schema.connect_for_reading(folder)) as connection:
        history = stored_history(connection, account.number, program, None)
        replayed = try_candidate(candidate_of(program, account), history, 0)
        return [each for each in replayed if isinstance(each, ReplayedPayment)]


def of_reads(folder: Path, program: Rule, lacking: Collection[int] = ()) -> Outcomes:
    """What the rule decides by what was recorded as read: all that it reads, in the order of
    `PUBLISHED`, but for the `lacking` windows, of which it is what a replay of the journal reads."""
    candidate = candidate_of(program, account_now(folder, "shop"))
    published, digests = rule(PUBLISHED), Digests(program.lets)
    order = [Digests(published.lets).of(each) for each in published.histories]
    places = [order.index(digests.of(each)) for each in program.histories]
    facts_of, found = facts_decoder(candidate.plan.read), {}
    replayed = {each.id: each.values for each in replay_of(folder, program)} if lacking else {}
    for entry, situation in of_entries(folder, program):
        decision = decode_decision(entry.outcome)
        read = decision.reads[len(decision.reads) - len(order) :]
        values = [
            replayed[entry.id][index] if index in lacking else read[place]
            for index, place in enumerate(places)
        ]
        was = PastDecision(score=decision.score)
        now = candidate.decide(facts_of(entry), was, values, situation)
        found[entry.id] = outcome_of(now)[::2]
    return found


@contextmanager
def as_opened(tables: Any) -> Iterator[None]:
    """What is made among the tables of an export is gone afterwards, so that another program can be asked."""
    made = "SELECT table_name, table_type FROM information_schema.tables"
    before = {*tables.execute(made).fetchall()}
    yield
    for name, kind in {*tables.execute(made).fetchall()} - before:
        tables.execute(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {name}")


def of_export(
    exported: ExportedHistory, target: Path, program: Rule | Scorecard
) -> tuple[tuple[int, ...], Outcomes]:
    """What an export decides, and which of the rule's windows it counted for that."""
    if not exported.parts:
        return (), {}
    asked = ask_rows(ColumnsAsked(target, "shop", program, 0, sys.maxsize, LATE, {}), exported)
    with as_opened(exported.tables), TemporaryDirectory() as folder:
        facts = make_concerned(asked)
        lacking = lacking_windows(asked)
        windows = WindowsAsked(target, "shop", program, lacking, 0, LATE)
        parts = [
            part
            for group in group_windows(windows)
            for part in split_windows(group, exported, Path(folder), 2)
        ]
        for part in parts:
            count_part(part, plan_of(part.asked), exported)
        make_seen(asked, join_parts(parts, exported.tables))
        if isinstance(program, Scorecard):
            score_rows(asked, facts)
        decide_rows(asked, facts)
        rows = exported.tables.execute(_OUTCOMES)
        COMPARED["programs"] += 1
        return lacking, {id_: (action, condition) for id_, action, condition in rows.fetchall()}


def live(folder: Path) -> Outcomes:
    """What was decided."""
    found = {}
    for entry, _ in of_entries(folder, rule(PUBLISHED)):
        decision = decode_decision(entry.outcome)
        assert decision.rule is not None
        found[entry.id] = decision.action, decision.rule.condition
    return found


def of_entries(folder: Path, program: Rule) -> Iterator[tuple[Any, Situation]]:
    """The payments with what was configured when they came."""
    account = account_now(folder, "shop")
    with closing(schema.connect_for_reading(folder)) as connection:
        history = stored_history(connection, account.number, program, None)
        for situation, batch in history.happened:
            yield from ((each, situation) for each in batch if each.kind == Kind.PAYMENT)


PUBLISHED = """
rule checkout
  list watched: string
  let often = count(payments by user.id over 9h)
  let spent = sum(payments.amount by user.id over 2h where status != "failed")
  condition watched when user.id in @watched and amount > 2 then deny
  condition cards when distinct(payments.method.card.fingerprint by user.id over 30h) > 1 then challenge
  condition often when often > 2 or (often > 1 and spent >= 9) then deny
  condition skus when max(payments.amount by merchant.id over 50h where metadata["sku"] != "b") > 7
    then challenge
  condition declines when count(transactions by user.id over 30h where status == "declined") > 1 then deny
  condition near when interval(payments by user.id) < 1h then challenge
"""
# The same windows with other numbers: the analyst's loop.
CHANGED = """
rule checkout
  list watched: string
  let often = count(payments by user.id over 9h)
  let spent = sum(payments.amount by user.id over 2h where status != "failed")
  condition some when often > 1 and not (spent < 5) or spent / often > 4.5 then challenge
  condition watched when user.id not in @watched and amount * 2 - 0.5 between 3 and 2 * 5 then allow
  condition skus when max(payments.amount by merchant.id over 50h where metadata["sku"] != "b") > 5
    and device.ip_address in ["198.51.100.0/24"] then deny
  condition sku when metadata["sku"] == "a" and status == "declined" then deny
  condition cards when distinct(payments.method.card.fingerprint by user.id over 30h) > 0
    and method.card.last_four starts with "1" then challenge
  condition far when not (interval(payments by user.id) < 2h) then deny
  condition declines when count(transactions by user.id over 30h where status == "declined") > 0 then deny
"""
ANEW = """
rule checkout
  list watched: string
  condition watched when user.id in @watched then challenge
  condition often when count(payments by user.id over 11h) > 1 then deny
  condition denied when count(payments by merchant.id over 9h where decision.action == "deny") > 1 then deny
  condition spent when sum(payments.amount by method.card.fingerprint over 3h where status == "declined") > 4
    then challenge
  condition young when age(payments by user.id where status == "declined") < 2d then challenge
  condition known when count(payments by user.id over 9h where label == "fraud") > 0
    or distinct(label of payments by merchant.id over 3d) > 1 then challenge
  condition mailed when count(payments by email_domain(user.email) over 2d) > 3 then challenge
  condition near when count(payments by ip_network(device.ip_address, 24), user.id over 2d) > 2 then deny
  condition listed when count(payments by user.id over 9h where user.id in @watched) > 1 then challenge
  condition failed when any(payments by user.id over 5h where status == "failed")
    or max(earlier payments.amount by user.id over 7h) > 4 then deny
"""
SCORED = """
scorecard bot_behaviour
  let often = count(payments by user.id over 1h)
  baseline 0.07
  signal library adds 2.5 when device.client.kind == "library"
  signal dear adds 0.35 when amount > 50
  signal hours adds -0.2 when hour(timestamp) < 7
  signal often adds 0.75 when often > 1
  signal again adds 0.6 * min(often, 6)
  signal dearer curves amount rising { < 10: -0.2, < 30.50: 0, < 80: 1.2, else 2.5, missing: 0.1 }
  signal named adds 1.25 when user.email contains "a" or metadata["sku"] == "a"
  signal unsayable adds 0.1 when entropy(user.id) > 2
"""

SAYABLE = SCORED.replace("entropy(user.id) > 2", "length(user.id) > 2")


def scorecard_of(text: str) -> Scorecard:
    program = read_file(text.encode(), KnownNames()).program
    assert isinstance(program, Scorecard)
    return program


configured = st.lists(
    st.tuples(
        st.integers(0, 20),
        st.sampled_from(
            [
                PutEntries("shop", "watched", [{"value": "u"}]),
                PutEntries("shop", "watched", [{"value": "v"}]),
                RemoveEntries("shop", "watched", ["u"]),
                ChangeSettings("shop", {"thresholds": {"challenge": 0.01, "deny": 0.2}}),
                ChangeSettings("shop", {"thresholds": {"challenge": 0.2, "deny": 0.9}}),
            ]
        ),
    ),
    max_size=4,
)


async def lived(folder: Path, happened: list[Any], changes: list[Any], stop: int) -> None:
    """Exports on the way, too, so that what follows is brought up by later exports."""
    async with open_shop(folder) as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 6}))
        await shop.publish(PUBLISHED)

        def making(change: Any) -> Any:
            async def make(shop: Shop) -> None:
                # There may be no entry to remove.
                with suppress(NotFound):
                    await shop.do(change)

            return make

        async def export(_shop: Shop) -> None:
            await shop.engine.journal.flush()
            await asyncio.to_thread(export_columns, folder, folder.parent / "columns", None)

        calls = [*((at, making(change)) for at, change in changes), (stop, export)]
        for at, call in sorted(calls, key=lambda each: -each[0]):
            happened = [*happened[:at], (0, ("call", call)), *happened[at:]]
        await happen(shop, happened)
        await export(shop)


pays = st.lists(
    st.tuples(st.sampled_from([0, 1, HOUR // 3, HOUR]), payments.map(lambda sent: ("pay", sent))),
    min_size=28,
    max_size=40,
)


@given(pays, steps, configured, st.integers(0, 40), st.sampled_from([3, days.PART_NUMBERS]))
@settings(max_examples=HISTORIES, deadline=None)
def test_an_export_decides_what_live_and_a_replay_decide(
    paid: list[Any], further: list[Any], changes: list[Any], stop: int, part: int
) -> None:
    happened = [*paid[:8], *further, *paid[8:]]
    with TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patched:
        patched.setattr(days, "PART_NUMBERS", part)
        folder, target = Path(made, "data"), Path(made, "columns")
        asyncio.run(lived(folder, happened, changes, stop))
        whole = not {"erase", "purge"} & {what for _, (what, _) in happened}
        with open_export(target, "shop", 0) as exported:
            compare_history(folder, target, exported, whole=whole)


def compare_history(folder: Path, target: Path, exported: ExportedHistory, *, whole: bool) -> None:
    """`whole` says that nothing was erased or purged of it."""
    lacking, found = of_export(exported, target, rule(PUBLISHED))
    COMPARED["histories"] += 1
    if whole and not lacking:
        same(found, live(folder), "live")
    for text in (PUBLISHED, CHANGED):
        lacking, found = of_export(exported, target, rule(text))
        same(found, of_reads(folder, rule(text), lacking), "what live read")
        if whole:
            same(found, of_journal(folder, rule(text)), "a replay")
    lacking, found = of_export(exported, target, rule(ANEW))
    same(found, of_journal(folder, rule(ANEW)), "a replay")
    assert len(lacking) == len(rule(ANEW).histories) or not found
    for text in (SAYABLE, SCORED):
        _, found = of_export(exported, target, scorecard_of(text))
        if whole:
            same(found, of_journal(folder, scorecard_of(text)), "a replay")


BOUNDED = "\n".join(each for each in ANEW.splitlines() if "age(" not in each)


@given(pays, steps, configured, st.lists(st.integers(0, 60), max_size=4), st.sampled_from([0, 20]))
@settings(max_examples=max(2, HISTORIES // 2), deadline=None)
def test_a_history_cut_in_time_is_counted_as_a_whole(
    paid: list[Any], further: list[Any], changes: list[Any], cuts: list[int], hours: int
) -> None:
    since = to_microseconds(START) + hours * HOUR if hours else 0
    with TemporaryDirectory() as made:
        folder, target = Path(made, "data"), Path(made, "columns")
        asyncio.run(lived(folder, [*paid[:8], *further, *paid[8:]], changes, 0))
        program = rule(BOUNDED)
        every = tuple(range(len(program.histories)))
        asked = WindowsAsked(target, "shop", program, every, since, LATE)
        with open_export(target, "shop", 0) as exported:
            for number, windows in enumerate(group_windows(asked)):
                plan, tables = plan_of(windows), exported.tables
                make_happened(tables, plan, start_of(windows, plan))
                found = []
                for places in ([], sorted({*cuts})):
                    spans = spans_at(windows, plan, tables, places)
                    assert len(spans) == len(places) + 1
                    parts = [
                        WindowsPart(
                            windows, None, at, 1, span, Path(made, f"{number}-{len(spans)}-{at}")
                        )
                        for at, span in enumerate(spans)
                    ]
                    for part in parts:
                        count_part(part, plan, exported)
                        make_happened(tables, plan, start_of(windows, plan))
                    with as_opened(tables):
                        (table,) = {*join_parts(parts, tables).values()}
                        found.append(tables.execute(f"FROM {table} ORDER BY sequence").fetchall())
                assert found[0] == found[1]
                COMPARED["values read in a span and in the whole"] += len(found[0])


def same(found: Outcomes, expected: Outcomes, whose: str) -> None:
    assert found == expected
    COMPARED[f"decisions of an export and of {whose}"] += len(found)


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of an eventful evening, with its export beside it."""
    made = tmp_path_factory.mktemp("shop")
    copytree(an_eventful_evening(), made / "data")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(days, "PART_NUMBERS", 400)
        export_columns(made / "data", made / "columns", None)
    return made


# Two versions with other windows decided in the evening: these two read none of them.
SAID = """
rule checkout
  list blocked: string
  let network = upper(method.card.network)
  condition blocked when method.card.fingerprint in @blocked then deny
  condition dear when amount * 2 + 3.5 >= 130 or amount / 3 > 30 then challenge
  condition near when device.ip_address in ["100.0.0.0/8", "2.0.0.0/7"] or network matches /^AM.*X/
    then challenge
  condition scored when not (score < 0.90) or device.client.kind == "library" then deny
  condition exact when amount not in [1.123, 2.2222] and email_domain(user.email) == "gmail.com" then allow
  condition late when timestamp - 1h > timestamp or order.id is missing then challenge
"""
MIXED = """
rule checkout
  list blocked: string
  list offices: ip
  table bins by prefix: funding: "credit" | "debit" | "prepaid"
  condition dear when amount > 120 then challenge
  condition office when device.ip_address in @offices then allow
  condition prepaid when @bins[method.card.bin].funding == "prepaid" then challenge
  condition blocked when method.card.fingerprint in @blocked then deny
  condition dollars when amount_in("USD") > 15 then deny
  condition morning when hour(timestamp) < 7 and device.headers["User-Agent"] contains "Mozilla" then deny
"""
REPLAYED = """
rule checkout
  list blocked: string
  list offices: ip
  let cards = distinct(payments.method.card.fingerprint by device.ip_address over 50m)
  let declined = count(transactions by device.fingerprint.id over 2h where status == "declined")
  let spent = sum(payments.amount by user.id, currency over 1d where status == "succeeded")
  condition blocked_card when method.card.fingerprint in @blocked then deny
  condition new_card when first(payments by user.id, method.card.fingerprint)
    and count(earlier payments by user.id over 1d) > 1 and amount > 50 then challenge
  condition office when device.ip_address in @offices then allow
  condition dear when amount_in("USD") > 60 then challenge
  condition many_cards when cards >= 3 then deny
  condition declines when declined > 2 or score >= 0.90 then deny
  condition spender when spent > 50 then challenge
  condition returning when count(payments by merchant.id over 1h where decision.action == "deny") > 6
    and interval(payments by user.id) < 1h then challenge
  condition failing when any(payments by device.ip_address over 3h where status == "declined")
    and device.headers["User-Agent"] contains "Mozilla" then challenge
"""


DOUBLED = "\n".join(
    [
        "rule checkout",
        "  let step0 = amount < 20",
        *(f"  let step{n} = step{n - 1} or step{n - 1}" for n in range(1, 71)),
        f"  let least = {'min(' * 40}amount{', 7)' * 40}",
        "  condition cheap when least < 5 and step10 then challenge",
        "  condition many when step70 or step20 then deny",
    ]
)
"""Written out at each use, its lets and operands would take 2 to the 70th nodes."""


@pytest.mark.parametrize("text", [SAID, MIXED, REPLAYED, DOUBLED])
@pytest.mark.parametrize("hour", [0, 2])
def test_the_report_is_that_of_the_journal(evening: Path, text: str, hour: int) -> None:
    since = to_microseconds(START) + hour * HOUR
    period = (since if hour else 0, since + DAY)
    labels = {entry.id: "fraud" for entry, _ in list(of_entries(evening / "data", rule(SAID)))[::9]}
    of = (rule(text), period, labels, quiet)
    assert backtest_columns(evening / "columns", "shop", *of) == backtest_account(
        evening / "data", "shop", *of
    )


def test_payments_that_arrived_after_the_period_are_left_out(evening: Path) -> None:
    since = to_microseconds(START) + 2 * HOUR
    of = (rule(MIXED), (since, since + HOUR), {}, quiet)
    report = backtest_columns(evening / "columns", "shop", *of)
    assert report == backtest_account(evening / "data", "shop", *of)
    later = (rule(MIXED), (since, since + 2 * HOUR), {}, quiet)
    more = backtest_columns(evening / "columns", "shop", *later)
    assert 0 < report.payments.payments < more.payments.payments


@pytest.mark.parametrize("newest", [1, 10_000])
def test_the_newest_payments_say_at_once_what_the_report_says_of_them(
    evening: Path, monkeypatch: pytest.MonkeyPatch, newest: int
) -> None:
    monkeypatch.setattr(over_columns, "PAYMENTS_AT_ONCE", newest)
    of = (rule(MIXED), (0, to_microseconds(START) + DAY), {})
    whole = backtest_columns(evening / "columns", "shop", *of, quiet)
    at_once = backtest_newest(evening / "columns", "shop", *of)
    assert at_once is not None
    latest = {(each.was, each.now): each.examples[0] for each in whole.changes}
    assert {(each.was, each.now): each.examples[0] for each in at_once.changes}.items() <= (
        latest.items()
    )
    assert 0 < at_once.payments.payments <= whole.payments.payments
    assert (at_once.changes == whole.changes) is (newest > whole.payments.payments)


def test_windows_that_are_to_be_counted_say_nothing_at_once(evening: Path) -> None:
    assert (
        backtest_newest(
            evening / "columns", "shop", rule(REPLAYED), (0, to_microseconds(START) + DAY), {}
        )
        is None
    )


def test_windows_of_several_keys_are_counted_together_where_payments_are_few(
    evening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def divided(*_of: Any) -> Iterator[WindowsPart]:
        raise AssertionError

    monkeypatch.setattr(windows_module, "split_windows", divided)
    text = """
rule checkout
  condition often when count(payments by user.id over 2h) > 2 then deny
  condition spent when sum(payments.amount by device.ip_address over 3h) > 40 then challenge
"""
    of = (rule(text), (0, to_microseconds(START) + DAY), {}, quiet)
    assert backtest_columns(evening / "columns", "shop", *of) == backtest_account(
        evening / "data", "shop", *of
    )


def test_windows_are_counted_in_several_processes(
    evening: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_module, "PAYMENTS_A_PROCESS", 100)
    monkeypatch.setattr(windows_module, "COLUMNS_A_PROCESS", 100)
    of = (rule(REPLAYED), (0, to_microseconds(START) + DAY), {}, quiet)
    assert backtest_columns(evening / "columns", "shop", *of) == backtest_account(
        evening / "data", "shop", *of
    )


@pytest.mark.parametrize("text", [SAID, MIXED, REPLAYED, DOUBLED])
def test_every_payment_gets_what_a_replay_gives_it(evening: Path, text: str) -> None:
    with open_export(evening / "columns", "shop", 0) as exported:
        lacking, found = of_export(exported, evening / "columns", rule(text))
    assert bool(lacking) is (text is REPLAYED)
    assert found == of_journal(evening / "data", rule(text))
    assert len(found) > 900


def test_a_rule_that_needs_events_is_refused(evening: Path) -> None:
    with pytest.raises(NotExportedError, match="metrics of events in windows that not every"):
        backtest_columns(
            evening / "columns",
            "shop",
            stored_rule(account_now(evening / "data", "shop"), 1),
            (0, to_microseconds(START) + DAY),
            {},
            quiet,
        )


@pytest.mark.parametrize("hour", [0, 2])
def test_a_scorecard_is_tried_with_the_rules_that_decided(evening: Path, hour: int) -> None:
    since = to_microseconds(START) + hour * HOUR
    whole_evening = [] if hour else [shipped_program()]
    for scorecard in (*whole_evening, scorecard_of(SCORED), scorecard_of(SAYABLE)):
        of = (scorecard, (since if hour else 0, since + DAY), {}, quiet)
        assert backtest_columns(evening / "columns", "shop", *of) == backtest_account(
            evening / "data", "shop", *of
        )


def test_a_score_changes_at_its_bound_and_nowhere_else() -> None:
    bounds = score_bounds()
    for wanted, (before, bound, beyond) in enumerate(
        zip((-64, *bounds[:-1]), bounds, (*bounds[1:], 64), strict=True), 1
    ):
        for part in (0.0, 1e-9, 1e-3, 0.5, 1.0):
            assert score(bound - UNSURE + part * (before - bound + 2 * UNSURE)) == wanted - 1
            assert score(bound + UNSURE + part * (beyond - bound - 2 * UNSURE)) == wanted


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="is no export with an account `shop`"):
        backtest_columns(tmp_path, "shop", rule(SAID), (0, to_microseconds(START) + DAY), {}, quiet)


def test_a_rule_that_was_never_published_is_tried_on_all(evening: Path) -> None:
    text = SAID.replace("rule checkout", "rule other")
    of = (rule(text), (0, to_microseconds(START) + DAY), {}, quiet)
    report = backtest_columns(evening / "columns", "shop", *of)
    assert report == backtest_account(evening / "data", "shop", *of)
    assert any("was ever published" in note for note in report.notes)


LARGE = "amount" + " * amount" * 8
"""More digits than SQL carries, so that compiled functions read the rows."""


@pytest.mark.parametrize(
    "condition",
    [
        f'"a" in metadata["skus"] and 2 in metadata["sizes"] and {LARGE} > 1',
        f'count(payments by merchant.id over 1h where "a" in metadata["skus"] and {LARGE} > 1) > 1',
    ],
)
def test_lists_in_metadata_are_looked_into_where_sql_cannot_decide(
    tmp_path: Path, condition: str
) -> None:
    async def live_on() -> None:
        async with open_shop(tmp_path / "data") as shop:
            for skus in ("ab", "bc", "a" * 20, "bcdefghijk"):
                sent = {"type": "purchase", "currency": "EUR", "amount": 5, "merchant": {"id": "m"}}
                sent |= {"method": {"type": "card"}, "analyze": {"bot_behaviour": True}}
                await shop.create(sent | {"metadata": {"skus": [*skus], "sizes": [1, 2]}})
            await shop.engine.journal.flush()

    asyncio.run(live_on())
    export_columns(tmp_path / "data", tmp_path / "columns", None)
    of = (
        rule(f"rule checkout condition asked when {condition} then deny"),
        (0, to_microseconds(START) + DAY),
        {},
    )
    (change,) = backtest_account(tmp_path / "data", "shop", *of, quiet).changes
    assert backtest_columns(tmp_path / "columns", "shop", *of, quiet).changes == (change,)
