"""How fast is a backtest over an export, compared with a query by hand and with the journal?

    python -m tollkeeper.bench.columns [--payments 1e6] [--rounds 3]

The rule reads three windows that the recorded decisions also read; the variant with a new window
changes the length of one. The hand-written query has the same conditions, and counts payments and
money by the change of action. Times are for everything: from opening the files to the finished
report; these two run three times a round. Processor time is that of all threads and processes, one
per processor. The first payments are those that the command shows on a terminal, timed from its
start.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import duckdb

from tollkeeper.bench.backtest import RULE as CHECKOUT
from tollkeeper.bench.history import A_SECOND, BATCH, INSERT, stored_entries
from tollkeeper.bench.servers import TOLL, cpu_seconds
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.columns.export import export_columns
from tollkeeper.engine.columns.windows import window_columns
from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.instants import now
from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.offline.backtest.report import Report
from tollkeeper.engine.offline.columns.backtest import backtest_columns
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.programs.load import shipped_program
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule

RULE = CHECKOUT.replace("rule checkout", "rule web_checkout")
CHANGED = RULE.replace("spent > 2000", "spent > 1500").replace("uses > 5", "uses > 6")
NEW_WINDOW = CHANGED.replace("device.fingerprint.id over 1h", "device.fingerprint.id over 2h")
OUTCOMES = 20_000
FIRST = "first payments on a terminal"
BY_HAND = """
SELECT was_action, was_condition, action, condition, currency, merchant, count(*), sum(amount) FROM (
  SELECT decision.action AS was_action, decision.condition AS was_condition, currency,
    merchant.id AS merchant, amount,
    CASE
      WHEN device IS NULL AND merchant.category_code = '4900' THEN 'renewal'
      WHEN {cards} >= 4 AND amount < 10.00 THEN 'many_cards'
      WHEN {uses} > 6 THEN 'card_again'
      WHEN type = 'verify' AND method.card.presence = 'card_present' THEN 'verify'
      WHEN method.card.network IN ('jcb', 'discover', 'other') AND amount > 900 THEN 'brands'
      WHEN merchant.country NOT IN ('BR', 'US', 'MX') AND amount > 450.50 THEN 'places'
      WHEN ends_with(user.email, '.test') AND amount > 400 THEN 'emails'
      WHEN starts_with(device.ip_address, '10.') OR starts_with(device.ip_address, '192.0.2.')
        OR starts_with(device.ip_address, '2001:db8:ffff:') THEN 'addresses'
      WHEN device.client.kind IN ('library', 'headless') AND decision.score > 0.8 THEN 'scripts'
      WHEN amount * 3 - 1.50 > 4990 AND "order".id IS NOT NULL THEN 'totals'
      WHEN {spent} > 1500 THEN 'spender'
      WHEN {cards} >= 3 AND ({uses} > 3 OR decision.score >= 0.95) THEN 'fast'
    END AS condition,
    CASE
      WHEN condition IN ('renewal', 'verify') THEN 'allow'
      WHEN condition IN ('many_cards', 'card_again', 'addresses', 'scripts') THEN 'deny'
      WHEN condition IS NOT NULL THEN 'challenge'
      WHEN decision.score >= 0.85 THEN 'deny'
      WHEN decision.score >= 0.50 THEN 'challenge'
      ELSE 'allow'
    END AS action
  FROM read_parquet('{files}')
  WHERE "analyze".rule.name = 'web_checkout'
) GROUP BY ALL
"""


def rule(text: str) -> Rule:
    program = read_file(text.encode(), KnownNames()).program
    assert isinstance(program, Rule)
    return program


async def furnish(folder: Path, at: int) -> None:
    async with open_engine(folder, "bench", clock=lambda: at) as engine:
        await CreateAccount("shop").perform(engine, "bench", unwatched)
        store = Store("shop", "rule", "web_checkout", RULE, activate=True)
        await store.perform(engine, "bench", unwatched)


def outcomes(random: Random) -> list[bytes]:
    """Decisions with what they read: the scorecard's windows, then the rule's."""
    scorecard = len(shipped_program().histories)
    made = []
    for _ in range(OUTCOMES):
        read = (
            random.choice((1, 1, 1, 2, 3, 4)),
            random.choice((1, 1, 2, 3, 5, 6, 7)),
            random.randrange(100, 300_000),
        )
        condition = random.choice((None, None, None, "card_again", "spender"))
        action: Any = {"card_again": "deny", "spender": "challenge"}.get(condition or "", "allow")
        applied = AppliedRule("web_checkout", 1, condition)
        reads = (*((1,) * scorecard), *read)
        made.append(encode_stored(Decision(action, random.randrange(101), applied, 0, reads)))
    return made


def decided_entries(payments: int, first: int, end: int, a_second: float) -> Iterator[Entry]:
    """Payments of different amounts, each with a decision."""
    random = Random(3)
    pool = outcomes(random)
    for entry in stored_entries(first, payments, end, a_second):
        cents = random.randrange(100, 200_000)
        amount = b'"amount":%d.%02d' % divmod(cents, 100)
        body = entry.body.replace(b'"amount":129.9', amount)
        yield entry._replace(body=body, outcome=pool[random.randrange(OUTCOMES)])


def fill(folder: Path, payments: int, end: int, a_second: float = A_SECOND) -> None:
    """Store so many payments, up to `end` (µs), with what their decisions read."""
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        (last,) = connection.execute("SELECT max(place) FROM journal").fetchone()
        rows = decided_entries(payments, last + 1, end, a_second)
        while batch := list(islice(rows, BATCH)):
            connection.execute("BEGIN")
            connection.executemany(INSERT, batch)
            connection.execute("COMMIT")


def processor_time() -> float:
    """Return that of this process and its finished children, in seconds."""
    used = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def timed(run: Callable[[], Any]) -> tuple[float, float]:
    """Return processor and wall time, in seconds."""
    begun, worked = perf_counter(), processor_time()
    run()
    return processor_time() - worked, perf_counter() - begun


def first_rows(*command: str) -> tuple[float, float]:
    """Return processor and wall time, in seconds, until a command shows rows on a terminal."""
    terminal, its_end = os.openpty()
    begun, found = perf_counter(), b""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=its_end) as process:
        os.close(its_end)
        while b"would be" not in found:
            found += os.read(terminal, 4096)
        lasted = perf_counter() - begun
        used = cpu_seconds(process.pid)
        process.kill()
    os.close(terminal)
    return used, lasted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payments", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    payments, end = given.payments, now()
    with TemporaryDirectory(prefix="toll-bench-") as name:
        folder, target = Path(name, "data"), Path(name, "columns")
        asyncio.run(furnish(folder, end - 10**15))
        fill(folder, payments, end)
        exported = timed(lambda: export_columns(folder, target, "shop"))
        files = target / "payments"
        size = sum(path.stat().st_size for path in target.rglob("*.parquet"))
        names = [each.name for each in window_columns(rule(CHANGED), {})]
        columns = dict(zip(("cards", "uses", "spent"), names, strict=True))
        query = BY_HAND.format(files=f"{files}/*/*/*.parquet", **columns)
        reports: dict[str, Report] = {}

        def by_hand() -> None:
            with closing(duckdb.connect()) as connection:
                rows = connection.execute(query).fetchall()
            assert sum(row[6] for row in rows) == payments

        def tried(text: str) -> Callable[[], None]:
            def run() -> None:
                reports[text] = backtest_columns(
                    target, "shop", rule(text), (0, end), {}, unwatched
                )

            return run

        def over_journal() -> None:
            report = backtest_account(folder, "shop", rule(NEW_WINDOW), (0, end), {}, unwatched)
            assert report.payments == reports[NEW_WINDOW].payments

        pair = {
            "a query by hand": by_hand,
            "`toll backtest --columns`, recorded windows": tried(CHANGED),
        }
        others = {
            "the same, a new window: counted": tried(NEW_WINDOW),
            "`toll backtest` over the journal": over_journal,
        }
        file = Path(name, "web_checkout.rule")
        file.write_text(CHANGED)
        arguments = ("--account", "shop", "--columns", str(target), "--data", str(folder))
        first = (str(TOLL), "backtest", str(file), *arguments)
        times: dict[str, list[tuple[float, float]]] = {each: [] for each in (*pair, *others, FIRST)}
        for _ in range(given.rounds):
            for each, run in (*pair.items(),) * 3 + (*others.items(),):
                times[each].append(timed(run))
            times[FIRST].append(first_rows(*first))
        found = {each: _medians(taken) for each, taken in times.items()}
        first_payments = found.pop(FIRST)
    show(
        f"An export of {payments:,} payments: {size / payments:,.0f} bytes each",
        ["", "processor s", "s", "payments/s of processor time"],
        [["the whole journal", *exported, payments / exported[0]]],
    )
    show(
        f"A rule of 12 conditions and 3 windows over {payments:,} payments,"
        f" {given.rounds} alternating rounds, medians",
        ["", "processor s", "s", "payments/s of processor time"],
        [
            *([each, *taken, payments / taken[0]] for each, taken in found.items()),
            [FIRST, *first_payments, None],
        ],
    )
    hand, recorded, new, journal = found.values()
    show_targets(
        [
            Target("recorded windows, × the query by hand", recorded[0] / hand[0], at_most=1.2),
            Target("first payments, processor s from the start", first_payments[0], at_most=1),
            Target(
                "recorded windows, × faster than the journal", journal[0] / recorded[0], at_least=4
            ),
            Target(
                "a new window, × less processor time than the journal",
                journal[0] / new[0],
                at_least=2,
            ),
            Target(
                "a new window, × faster than the journal on the clock",
                journal[1] / new[1],
                at_least=4,
            ),
        ]
    )


def _medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    return median(each[0] for each in taken), median(each[1] for each in taken)


if __name__ == "__main__":
    main()
