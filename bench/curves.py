"""What do curves fitted to an account's own labels add to the shipped scorecard?

    python -m tollkeeper.bench.curves [SEED …]

Each seed is one account's hard traffic, all of it labelled. What is learned from the first 70 % is
judged on the last 30 %, which has partly other campaigns; on the first 70 % itself, where each
payment is scored by curves that never saw its campaign; and on families that were left out of the
labels, two at a time, with all their payments. No choice was made on these seeds. The last table has
what a score costs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from tollkeeper.api.terminal.traffic import label_items
from tollkeeper.bench.hard_traffic import hard_traffic
from tollkeeper.bench.scores import START, cost, day_of_payments, half, read_scorecard
from tollkeeper.bench.tables import show
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.curves import (
    Amounts,
    Steps,
    choose_penalty,
    estimate_curves,
)
from tollkeeper.engine.offline.fit.examples import Examples, examples_in_file
from tollkeeper.engine.offline.fit.fitting import (
    LEARNED,
    FitError,
    FittedScorecard,
    fit_curves,
    offer_curves,
)
from tollkeeper.engine.offline.fit.quality import Quality
from tollkeeper.engine.offline.fit.steps import CutInput
from tollkeeper.engine.offline.fit.weighed import curve_inputs
from tollkeeper.engine.offline.fit.write_curves import write_curves
from tollkeeper.engine.programs.load import SHIPPED, shipped_program
from tollkeeper.grammar.checker.curves import MAX_CURVES, MAX_STEPS
from tollkeeper.grammar.program import Scorecard
from tollkeeper.grammar.types import Duration

SEEDS = tuple(range(2001, 2013))
SHIPPED_FILE = SHIPPED / "bot_behaviour.rule"
AT_ONCE = 2
"""The number of families that are left out of the labels together."""
LEAST = 5
"""The least payments of a family in a seed by which it is judged."""
TITLES = ["ROC AUC", "recall at 0.1 %", "recall at 1 %", "calibration error"]


class LeftOutFamily(NamedTuple):
    """The shares of a family's payments above the score of 1 % of later people: by the author, and
    by curves that were learned without its labels."""

    family: str
    payments: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class JudgedSeed:
    fitted: FittedScorecard
    families: tuple[LeftOutFamily, ...]


def judged(seed: int, program: Scorecard) -> JudgedSeed:
    items = list(hard_traffic(seed, START, half(seed)))
    kinds = np.array([item.kind for item in items if "payment" in item.body])
    with TemporaryDirectory() as folder:
        history = Path(folder) / "labelled.jsonl"
        history.write_bytes(b"\n".join(map(msgspec.json.encode, label_items(items, START))))
        examples = examples_in_file(program, history, lambda _share: None, Environment())
    text = SHIPPED_FILE.read_text(encoding="utf-8")
    fitted = fit_curves(text, program, examples)
    return JudgedSeed(fitted, tuple(left_out_families(seed, program, examples, kinds)))


def left_out_families(
    seed: int, program: Scorecard, examples: Examples, kinds: NDArray[np.str_]
) -> Iterator[LeftOutFamily]:
    split = int(len(kinds) * LEARNED)
    early, penalty = np.arange(split), None
    later_people = (np.arange(len(kinds)) >= split) & (examples.labels == 0)
    families = half(seed).families
    for first in range(0, len(families), AT_ONCE):
        left_out = families[first : first + AT_ONCE]
        rows = early[~np.isin(kinds[early], left_out)]
        labels = examples.labels[rows]
        if not labels.any():
            continue
        offered = offer_curves(program, examples, rows)
        chosen = [each.rows(rows) for each in offered.steps]
        if penalty is None:
            penalty = choose_penalty(chosen, offered.others[rows], labels, examples.campaigns[rows])
        estimated = estimate_curves(chosen, offered.others[rows], labels, penalty)
        after = offered.others + estimated.added(offered.steps)
        for family in left_out:
            its = kinds == family
            if its.sum() < LEAST:
                continue
            before, now = (
                float((logits[its] > np.quantile(logits[later_people], 0.99)).mean())
                for logits in (offered.author, after)
            )
            yield LeftOutFamily(family, int(its.sum()), before, now)


def show_families(several: Sequence[LeftOutFamily]) -> None:
    """Print each family's mean over its seeds, the one that labels of others harm most first."""
    rows = []
    for family in {each.family for each in several}:
        its = [each for each in several if each.family == family]
        before, after = mean(each.before for each in its), mean(each.after for each in its)
        worse = sum(each.after < each.before for each in its)
        rows.append((after - before, family, its, f"{before:.3f} → {after:.3f}", worse))
    rows.sort(key=lambda row: row[0])
    show(
        "Families left out of the labels",
        ["family", "payments", "recall at 1 %", "seeds", "of them worse"],
        [
            [family, sum(each.payments for each in its), shares, len(its), worse]
            for _, family, its, shares, worse in rows
        ],
    )


def show_accounts(accounts: Sequence[Sequence[LeftOutFamily]]) -> None:
    """Print what families that were left out gain, or lose, on average over the accounts."""
    gains = [mean(each.after - each.before for each in families) for families in accounts]
    error = stdev(gains) / len(gains) ** 0.5
    print(f"Mean over the accounts: {mean(gains):+.3f} ± {error:.3f} (standard error)\n")


async def show_cost(fitted: Sequence[FittedScorecard]) -> None:
    """Print the cost of a score: with the shipped scorecard, with each seed's curves, and with as many
    curves of as many steps as a file may have.
    """
    paid = day_of_payments()
    with TemporaryDirectory() as folder:
        paths = [SHIPPED_FILE]
        for number, text in enumerate((with_most_curves(), *(each.text for each in fitted))):
            paths.append(Path(folder) / f"{number}.rule")
            paths[-1].write_text(text, encoding="utf-8")
        costs = [await cost(paid, read_scorecard(path)) for path in paths]
    shipped, most, *curved = (each.score for each in costs)
    rows: list[list[str | float]] = [["shipped", 0, shipped]]
    if fitted:
        counts = [len(each.curves) for each in fitted]
        rows.append(["fitted, middle of the seeds", median(counts), median(curved)])
        rows.append(["fitted, the dearest", max(counts), max(curved)])
    rows.append([f"with the most curves, of {MAX_STEPS} steps", MAX_CURVES, most])
    show(f"Processor time of a score, {len(paid):,} payments", ["scorecard", "curves", "µs"], rows)


def with_most_curves() -> str:
    curves = []
    for each in curve_inputs(shipped_program())[-MAX_CURVES:]:
        unit = HOUR if isinstance(each.expression.type, Duration) else 1
        bounds = np.arange(1.0, MAX_STEPS) * unit
        steps = Steps(np.zeros(0, np.int64), len(bounds), (1,), 0, False)
        curves.append((CutInput(each, bounds, steps), Amounts(np.arange(MAX_STEPS) / 100, 0.0)))
    return write_curves(SHIPPED_FILE.read_text(encoding="utf-8"), curves).text


def figures(quality: Quality) -> tuple[float, ...]:
    return quality.roc_auc, *quality.recall, quality.calibration_error


def compare(title: str, seeds: Sequence[int], pairs: Sequence[tuple[Quality, Quality]]) -> None:
    """Print a row per seed, the one with the least recall first: the shipped scorecard alone, and
    with curves.
    """
    found = [
        (seed, figures(before), figures(after))
        for seed, (before, after) in zip(seeds, pairs, strict=True)
    ]
    rows: list[list[str | int]] = [
        [
            "mean",
            *_cells(
                *(
                    tuple(map(mean, zip(*side, strict=True)))
                    for side in zip(*(f[1:] for f in found), strict=True)
                )
            ),
        ]
    ]
    rows += [[str(seed), *_cells(*both)] for seed, *both in sorted(found, key=lambda f: f[2][2])]
    show(title, ["seed", *TITLES], rows)


def _cells(before: Sequence[float], after: Sequence[float]) -> list[str]:
    return [f"{old:.3f} → {new:.3f}" for old, new in zip(before, after, strict=True)]


def main() -> None:
    seeds = tuple(map(int, sys.argv[1:])) or SEEDS
    program = shipped_program()
    found, refused = dict[int, JudgedSeed](), []
    for seed in track(seeds, "Seeds", console=Console(stderr=True)):
        try:
            found[seed] = judged(seed, program)
        except FitError:
            # There were no bots in the last 30 % of the time, so there is nothing to judge.
            refused.append(seed)
    fitted = {seed: each.fitted for seed, each in found.items()}
    compare("On later payments", [*fitted], [(each.before, each.after) for each in fitted.values()])
    left_out = [(seed, each.left_out) for seed, each in fitted.items() if each.left_out]
    compare(
        "On campaigns not learned from",
        [seed for seed, _ in left_out],
        [pair for _, pair in left_out],
    )
    show_families([family for each in found.values() for family in each.families])
    accounts = [each.families for each in found.values() if each.families]
    if len(accounts) > 1:
        show_accounts(accounts)
    if refused:
        print(f"Without a bot to judge by: {', '.join(map(str, refused))}\n")
    asyncio.run(show_cost([*fitted.values()]))


if __name__ == "__main__":
    main()
