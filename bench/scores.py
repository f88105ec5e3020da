"""How well does the scorecard tell generated bots from people, and what does a score cost?

    python -m tollkeeper.bench.scores [--beside FILE] [SEED …]

The tables of docs/scorecard.md are over all its seeds, 1401 to 1412 and 1601 to 1612, on which no
choice was made.
Odd seeds have the families and kinds of the first half of the hard traffic, even ones those of the
second. Every payment is judged, including the first. `--beside` compares another scorecard on the
same payments, such as that of an earlier commit (`git show COMMIT:rules/bot_behaviour.rule`).
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import track

from tollkeeper.api.terminal.traffic import TrafficItem, label_items, traffic
from tollkeeper.bench.create import create
from tollkeeper.bench.hard_traffic import FIRST_HALF, SECOND_HALF, HardPlan, hard_traffic
from tollkeeper.bench.hard_traffic.probing import LADDER, probed_traffic
from tollkeeper.bench.tables import show
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.facts.facts import derive
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.fit.quality import quality
from tollkeeper.engine.offline.fit.replay import score_history
from tollkeeper.engine.offline.testing.streams import CreationLine
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.programs.load import shipped_scorecard
from tollkeeper.engine.programs.loaded import LoadedScorecard, load_scorecard
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.velocity.contract import Record, State
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Scorecard

SEEDS = (*range(1401, 1413), *range(1601, 1613))
START = datetime(2025, 6, 2, tzinfo=UTC)
THRESHOLDS = Thresholds()
FIGURES = ("ROC AUC", "PR AUC", "recall at 0.1 %", "recall at 1 %")
CHOICES = (10, 30, 50, 70, 85, 95)
ROUNDS = 3
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class ScoredPayment:
    """A scored payment: what it was, and its score in hundredths."""

    kind: str
    bot: bool
    score: int


class Cost(NamedTuple):
    """Microseconds of processor time per payment, except for `held`, the elements in windows per
    payment.
    """

    client_facts_of_a_header_set_seen_before: float
    keys_of_its_windows: float
    its_windows: float
    score: float
    held: float


def scored(seed: int, scorecard: LoadedScorecard) -> list[ScoredPayment]:
    items = list(hard_traffic(seed, START, half(seed)))
    paid = [item for item in items if "payment" in item.body]
    lines = map(msgspec.json.encode, label_items(items, START))
    history = score_history(read_labelled(lines), scorecard, Environment())
    return [
        ScoredPayment(item.kind, item.bot, each.score)
        for item, each in zip(paid, history, strict=True)
    ]


def half(seed: int) -> HardPlan:
    return FIRST_HALF if seed % 2 else SECOND_HALF


def probed(seed: int) -> list[ScoredPayment]:
    """Return the attempts of attackers who see each answer, by what they had changed; a challenge
    stops them.
    """
    paid: list[TrafficItem] = []
    seen: list[ScoredPayment] = []

    def was_stopped() -> bool:
        return seen[-1].score >= THRESHOLDS.challenge

    def taken() -> Iterator[TrafficItem]:
        for item in probed_traffic(seed, START, half(seed), was_stopped):
            if "payment" in item.body:
                paid.append(item)
            yield item

    lines = map(msgspec.json.encode, label_items(taken(), START))
    for each in score_history(read_labelled(lines), shipped_scorecard(), Environment()):
        item = paid[-1]
        seen.append(ScoredPayment(item.kind, item.bot, each.score))
    return [each for each in seen if each.kind in LADDER]


def show_quality(seeds: Sequence[int], by_seed: Sequence[Sequence[ScoredPayment]]) -> None:
    """Print a row per seed, worst first, after the mean and the spread over seeds."""
    found = []
    for seed, seen in zip(seeds, by_seed, strict=True):
        share = sum(each.bot for each in seen) / len(seen)
        found.append((seed, len(seen), share, _figures(seen)))
    columns = list(zip(*(figures for _, _, _, figures in found), strict=True))
    rows: list[list[str | int]] = [["mean", "", "", *(f"{mean(each):.3f}" for each in columns)]]
    rows.append(["worst", "", "", *(f"{min(each):.3f}" for each in columns)])
    if len(seeds) > 1:
        rows.append(["deviation", "", "", *(f"{stdev(each):.3f}" for each in columns)])
    for seed, count, share, figures in sorted(found, key=lambda each: each[3][2]):
        shown = (f"{each:.3f}" for each in figures)
        rows.append([str(seed), f"{count:,}", f"{100 * share:.1f} %", *shown])
    show(
        "Told apart",
        ["seed", "payments", "bots", *FIGURES],
        rows,
    )


def show_thresholds(seen: Sequence[ScoredPayment]) -> None:
    rows = []
    for threshold in CHOICES:
        people, bots = (
            sum(each.score >= threshold for each in chosen) / len(chosen)
            for chosen in ([each for each in seen if each.bot == bot] for bot in (False, True))
        )
        rows.append([f"{threshold / 100:.2f}", f"{100 * people:.2f} %", f"{100 * bots:.1f} %"])
    show("Thresholds", ["score from", "people", "bots"], rows)


def show_kinds(seen: Sequence[ScoredPayment], bots: bool) -> None:
    """Print families with the least recall first, or people most often mistaken first; last column
    at 1 % of people.
    """
    at_one_percent = _threshold(seen)
    chosen = [each for each in seen if each.bot == bots]
    rows: list[list[str | int | float]] = []
    for kind in sorted({each.kind for each in chosen} | {"all"}):
        scores = [each.score for each in chosen if kind in (each.kind, "all")]
        shares = [
            100 * sum(score >= threshold for score in scores) / len(scores)
            for threshold in (THRESHOLDS.challenge, THRESHOLDS.deny, at_one_percent)
        ]
        rows.append([kind, len(scores), median(scores) / 100, *shares])
    rows.sort(key=lambda row: float(row[3]), reverse=not bots)
    show(
        "Attack families: found" if bots else "Honest traffic: falsely found",
        ["kind", "payments", "median score", "challenged or denied", "denied", "at 1 % of people"],
        [[*row[:3], *(f"{share:.2f} %" for share in row[3:])] for row in rows],
    )


def show_probed(seen: Sequence[ScoredPayment]) -> None:
    """Print by rung, the cheapest change first, how much of what was tried was stopped."""
    rows: list[list[str | int]] = []
    for rung in LADDER:
        scores = [each.score for each in seen if each.kind == rung]
        if scores:
            stopped = sum(score >= THRESHOLDS.challenge for score in scores) / len(scores)
            rows.append([rung, len(scores), f"{100 * stopped:.1f} %"])
    show("Attackers who see the answers", ["changed by then", "tried", "stopped"], rows)


def show_beside(
    seeds: Sequence[int],
    before: Sequence[Sequence[ScoredPayment]],
    now: Sequence[Sequence[ScoredPayment]],
) -> None:
    """Print what the other scorecard does and what the shipped one does, by seed and by kind."""
    figures = [tuple(map(_figures, each)) for each in zip(before, now, strict=True)]
    rows = [
        [name, *(f"{old:.3f} → {new:.3f}" for old, new in zip(*sides, strict=True))]
        for name, sides in (
            (
                "mean",
                [tuple(map(mean, zip(*side, strict=True))) for side in zip(*figures, strict=True)],
            ),
            *sorted(zip(map(str, seeds), figures, strict=True), key=lambda row: row[1][1][2]),
        )
    ]
    show("Told apart: before → now", ["seed", *FIGURES], rows)
    shares = []
    for by_seed in (before, now):
        seen = [each for several in by_seed for each in several]
        at_one_percent, several = _threshold(seen), defaultdict[tuple[bool, str], list[int]](list)
        for each in seen:
            several[not each.bot, each.kind].append(each.score)
        shares.append(
            {
                kind: [
                    100 * sum(score >= threshold for score in scores) / len(scores)
                    for threshold in (THRESHOLDS.challenge, at_one_percent)
                ]
                for kind, scores in several.items()
            }
        )
    show(
        "By kind, families first: before → now",
        ["kind", "challenged or denied", "at 1 % of people"],
        [
            [kind[1], *(f"{old:.2f} % → {new:.2f} %" for old, new in zip(*both, strict=True))]
            for kind, both in sorted(
                ((kind, [each[kind] for each in shares]) for kind in shares[1]),
                key=lambda row: (row[0][0], row[1][1][1] * (-1 if row[0][0] else 1)),
            )
        ],
    )


def _threshold(seen: Sequence[ScoredPayment]) -> int:
    """Return the score that at most 1 % of the people reach."""
    people = sorted((each.score for each in seen if not each.bot), reverse=True)
    return people[len(people) // 100] + 1


def _figures(seen: Sequence[ScoredPayment]) -> tuple[float, ...]:
    judged = quality(
        np.array([each.score / 100 for each in seen]),
        np.array([float(each.bot) for each in seen]),
    )
    return judged.roc_auc, judged.pr_auc, *judged.recall


async def show_cost(scorecards: Mapping[str, LoadedScorecard]) -> None:
    """Print one day's payments: each step by itself, for each scorecard in turn, and the whole way
    to the disk with the shipped one, in rounds.
    """
    paid = day_of_payments()
    rounds = [[await cost(paid, each) for each in scorecards.values()] for _ in range(ROUNDS)]
    whole = median([await decision_cost(paid) for _ in range(ROUNDS)])
    middles = [
        Cost(*map(median, zip(*several, strict=True))) for several in zip(*rounds, strict=True)
    ]
    rows: list[list[str | int | float]] = [
        ["aggregates", *(len(each.reading.plan.windows) for each in scorecards.values())],
        ["elements held for each payment", *(each.held for each in middles)],
    ]
    rows += [
        [f"{step.replace('_', ' ')}, µs", *(getattr(each, step) for each in middles)]
        for step in Cost._fields[:-1]
    ]
    show(
        f"Processor time of a payment: {len(paid):,} payments; the whole decision with the shipped"
        f" scorecard, {AT_ONCE} at a time, takes {whole:.0f} µs",
        ["step", *scorecards],
        rows,
    )


def day_of_payments() -> list[CreationLine]:
    items = list(traffic(1, START))
    lines = map(msgspec.json.encode, label_items(items, START))
    return [each.item for each in read_labelled(lines) if isinstance(each.item, CreationLine)]


async def cost(paid: Sequence[CreationLine], scorecard: LoadedScorecard) -> Cost:
    clients, environment = Clients(), Environment()
    facts = [derive(each.payment, each.arrived, clients) for each in paid]
    windows = Windows()
    await windows.seal(await windows.add(1, scorecard.reading.plan.series))
    marks = [process_time()]
    for created in paid:
        if created.payment.device is not None:
            clients(created.payment.device.headers)
    marks.append(process_time())
    for each in facts:
        scorecard.reading.reads(each, environment)
    marks.append(process_time())
    observed = []
    for each in facts:
        state = State(each, environment=environment)
        record = Record(1, each.payment.id, each.timestamp, each.arrived, state)
        reads = scorecard.reading.reads(each, environment)
        observed.append((await windows.observe(record, reads)).values)
    marks.append(process_time())
    for each, seen in zip(facts, observed, strict=True):
        scorecard.score(each, seen, environment)
    marks.append(process_time())
    client, keys, counted, score = (
        (after - before) / len(paid) * 1e6 for before, after in pairwise(marks)
    )
    held = (await windows.status(1)).entries / len(paid)
    return Cost(client, keys, counted - keys, score, held)


async def decision_cost(paid: Sequence[CreationLine]) -> float:
    """Return microseconds of processor time per payment, from the decoded request to the decision
    on disk.
    """
    with TemporaryDirectory() as folder:
        async with open_engine(Path(folder), "bench") as engine:
            await CreateAccount("bench").perform(engine, "bench", lambda _share: None)
            (active,) = engine.active.values()
            await rebuild(engine, lambda _share: None)
            begun = process_time()
            for first in range(0, len(paid), AT_ONCE):
                several = paid[first : first + AT_ONCE]
                await asyncio.gather(
                    *(create(engine, active, each.payment, each.arrived) for each in several)
                )
            return (process_time() - begun) / len(paid) * 1e6


async def measure(seeds: Sequence[int], beside: Path | None) -> None:
    shipped = shipped_scorecard()
    by_seed = [
        scored(seed, shipped) for seed in track(seeds, "Seeds", console=Console(stderr=True))
    ]
    seen = [each for several in by_seed for each in several]
    show_quality(seeds, by_seed)
    show_thresholds(seen)
    show_kinds(seen, bots=True)
    show_kinds(seen, bots=False)
    show_probed([each for seed in seeds for each in probed(seed)])
    scorecards = {"now": shipped}
    if beside is not None:
        other = read_scorecard(beside)
        scorecards = {"before": other, "now": shipped}
        show_beside(seeds, [scored(seed, other) for seed in seeds], by_seed)
    await show_cost(scorecards)


def read_scorecard(path: Path) -> LoadedScorecard:
    program = read_file(path.read_bytes(), KnownNames()).program
    assert isinstance(program, Scorecard)
    return load_scorecard(program, 0, full_vocabulary())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, default=SEEDS, metavar="SEED")
    parser.add_argument("--beside", type=Path, metavar="FILE")
    given = parser.parse_args()
    asyncio.run(measure(given.seeds, given.beside))


if __name__ == "__main__":
    main()
