"""How fast is stored history replayed, compared with only decoding the same bodies?

    python -m tollkeeper.bench.backtest [days of traffic]

Times are processor time of one core: from the journal's file to the finished report.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import msgspec

from tollkeeper.api.terminal.traffic import traffic
from tollkeeper.bench.tables import show
from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import Facts, StoredFacts, derive, record
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.limits import Limits
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.offline.backtest.backtest import backtest_account
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.stored_records import encode_stored
from tollkeeper.engine.update import apply_update
from tollkeeper.engine.velocity.contract import State
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule

START = datetime(2026, 3, 2, tzinfo=UTC)
ROUNDS = 5

RULE = """
rule checkout
  let cards = distinct(payments.method.card.fingerprint by device.fingerprint.id over 1h)
  let uses = count(payments by method.card.fingerprint over 24h)
  let spent = sum(payments.amount by user.id, currency over 24h)
  condition renewal when device is missing and merchant.category_code == "4900" then allow
  condition many_cards when cards >= 4 and amount < 10.00 then deny
  condition card_again when uses > 5 then deny
  condition verify when type == "verify" and method.card.presence == "card_present" then allow
  condition brands when method.card.network in ["jcb", "discover", "other"] and amount > 900 then challenge
  condition places when not (merchant.country in ["BR", "US", "MX"]) and amount > 450.50 then challenge
  condition emails when user.email ends with ".test" and amount > 400 then challenge
  condition addresses
    when device.ip_address in ["10.0.0.0/8", "192.0.2.0/24", "2001:db8:ffff::/48"] then deny
  condition scripts when device.client.kind in ["library", "headless"] and score > 0.8 then deny
  condition totals when amount * 3 - 1.50 > 4990 and order.id is present then challenge
  condition spender when spent > 2000 then challenge
  condition fast when cards >= 3 and (uses > 3 or score >= 0.95) then challenge
"""
SETTLED = RULE.replace(
    "sum(payments.amount by user.id, currency over 24h)",
    'sum(payments.amount by user.id, currency over 24h where status == "succeeded")',
)


def entries(days: int) -> Iterator[Entry]:
    """Payments and their updates, as a service would have stored them."""
    sequence = 1000
    clients = Clients()
    decision = encode_stored(
        Decision(action="allow", score=4, rule=AppliedRule("checkout", 1), reads=(1, 1, 12990) * 6)
    )
    for day in range(days):
        start = START + timedelta(days=day)
        known: dict[str, State] = {}
        for item in traffic(day, start):
            sequence += 1
            arrived = to_microseconds(start) + round(item.at * 1_000_000)
            if "payment" in item.body:
                sent = {
                    **item.body["payment"],
                    "analyze": {"bot_behaviour": True, "rule": {"name": "checkout"}},
                }
                payment = read_creation(msgspec.json.encode({"payment": sent}), arrived, Limits())
                assert isinstance(payment, Payment)
                state = State(derive(payment, arrived, clients))
                kind, outcome = Kind.PAYMENT, decision
            else:
                sent = dict(item.body["update"])
                before = known[sent.pop("id")]
                change = read_update(msgspec.json.encode({"payment": sent}), arrived, Limits())
                assert isinstance(change, Update)
                after = apply_update(before, change, arrived)
                assert isinstance(after, State)
                kind, state, outcome = Kind.UPDATE, after, None
            facts: Facts = state.payment
            known[facts.payment.id] = state
            yield Entry(
                sequence=sequence,
                account=1,
                kind=kind,
                id=facts.payment.id,
                arrived=arrived,
                time=facts.timestamp,
                body=encode_stored(record(facts)),
                outcome=outcome,
            )


async def furnish(folder: Path) -> None:
    clock = to_microseconds(START) - 1
    async with open_engine(folder, "bench", clock=lambda: clock) as engine:
        await CreateAccount("shop").perform(engine, "bench", lambda _share: None)
        store = Store("shop", "rule", "checkout", RULE, activate=True)
        await store.perform(engine, "bench", lambda _share: None)


def fill_folder(folder: Path, happened: Iterable[Entry]) -> Path:
    """Return a data folder with a shop and these entries."""
    asyncio.run(furnish(folder))
    with closing(schema.connect(folder)) as connection:
        connection.execute("BEGIN")
        connection.executemany(
            f"INSERT INTO journal ({reads.COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", happened
        )
        connection.execute("COMMIT")
    return folder


def rule(text: str) -> Rule:
    program = read_file(text.encode(), KnownNames()).program
    assert isinstance(program, Rule)
    return program


def main() -> None:
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    period = (0, to_microseconds(START + timedelta(days=days)))
    happened = list(entries(days))
    created = [each for each in happened if each.kind == Kind.PAYMENT]
    payments, updates = len(created), len(happened) - len(created)
    bodies = [each.body for each in created]
    decode = msgspec.json.Decoder(StoredFacts).decode

    def plain() -> None:
        for body in bodies:
            decode(body)

    def tried(folder: Path, text: str) -> None:
        report = backtest_account(folder, "shop", rule(text), period, {}, lambda _share: None)
        assert report.payments.payments == payments

    with TemporaryDirectory(prefix="toll-bench-") as name:
        alone = fill_folder(Path(name, "alone"), created)
        updated_too = fill_folder(Path(name, "updated"), happened)
        runs: dict[str, Callable[[], None]] = {
            "plain decode of the payments": plain,
            "payments alone": lambda: tried(alone, RULE),
            "payments, an update each": lambda: tried(updated_too, RULE),
            "the same, a window of final statuses": lambda: tried(updated_too, SETTLED),
        }
        times: dict[str, list[float]] = {each: [] for each in runs}
        for _ in range(ROUNDS):
            for each, run in runs.items():
                begun = process_time()
                run()
                times[each].append(process_time() - begun)
    size = sum(map(len, bodies)) / payments
    base = median(times["plain decode of the payments"])
    show(
        f"{payments:,} payments of {size:,.0f} bytes, {updates:,} updates; 12 conditions, 3 windows;"
        f" {ROUNDS} alternating rounds, processor time",
        ["", "payments/s, best", "payments/s, median", "× a decode"],
        [
            [each, payments / min(taken), payments / median(taken), median(taken) / base]
            for each, taken in times.items()
        ],
    )


if __name__ == "__main__":
    main()
