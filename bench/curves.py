"""What do curves fitted to an account's own labels add to the shipped scorecard?

    python -m tollkeeper.bench.curves [SEED …]

Each seed is one account's hard traffic, all of it labelled. What is learned from the first 70 % is
judged on the last 30 %, which has partly other campaigns; and on the first 70 % itself, where each
payment is scored by curves that never saw its campaign. No choice was made on these seeds, those of
`bench.scores`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import msgspec
from rich.console import Console
from rich.progress import track

from tollkeeper.api.terminal.traffic import label_items
from tollkeeper.bench.hard_traffic import FIRST_HALF, SECOND_HALF, hard_traffic
from tollkeeper.bench.scores import SEEDS, START
from tollkeeper.bench.tables import show
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.fit.examples import examples_in_file
from tollkeeper.engine.offline.fit.fitting import FitError, FittedScorecard, fit_curves
from tollkeeper.engine.offline.fit.quality import Quality
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Scorecard

TITLES = ["ROC AUC", "recall at 0.1 %", "recall at 1 %", "calibration error"]


def fitted(seed: int) -> FittedScorecard:
    text = (SHIPPED / "bot_behaviour.rule").read_text(encoding="utf-8")
    program = read_file(text.encode(), KnownNames()).program
    assert isinstance(program, Scorecard)
    items = hard_traffic(seed, START, FIRST_HALF if seed % 2 else SECOND_HALF)
    with TemporaryDirectory() as folder:
        history = Path(folder) / "labelled.jsonl"
        history.write_bytes(b"\n".join(map(msgspec.json.encode, label_items(items, START))))
        examples = examples_in_file(program, history, lambda _share: None, Environment())
    return fit_curves(text, program, examples)


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
    found, refused = {}, []
    for seed in track(seeds, "Seeds", console=Console(stderr=True)):
        try:
            found[seed] = fitted(seed)
        except FitError:
            # There were no bots in the last 30 % of the time, so there is nothing to judge.
            refused.append(seed)
    compare("On later payments", [*found], [(each.before, each.after) for each in found.values()])
    left_out = [(seed, each.left_out) for seed, each in found.items() if each.left_out]
    compare(
        "On campaigns not learned from",
        [seed for seed, _ in left_out],
        [pair for _, pair in left_out],
    )
    if refused:
        print(f"Without a bot to judge by: {', '.join(map(str, refused))}")


if __name__ == "__main__":
    main()
