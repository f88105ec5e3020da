"""How much later fraud do suggested conditions stop, compared with a hand-written rule?

    python -m tollkeeper.bench.suggest [SEED …]

Each seed is a week of the hard traffic at shops of its own: conditions are learned and pruned on
the first 80 % and judged on the rest, and on another week of the same shops, where all payments are
new. They are compared, at the same number of affected honest people, with the expert's rule
(`expert.rule`), each of its conditions with the counts that do best in the judged time itself, the
best conditions first; and with the shipped scorecard from the best score on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from statistics import mean, pstdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from rich.console import Console
from rich.progress import track

from tollkeeper.api.terminal.traffic import label_items
from tollkeeper.bench.hard_traffic import FIRST_HALF, SECOND_HALF, hard_traffic
from tollkeeper.bench.tables import Target, show, show_targets
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.backtest import candidate_of
from tollkeeper.engine.offline.backtest.files import file_history
from tollkeeper.engine.offline.backtest.replay import ReplayedPayment, try_candidate
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.fit.replay import score_history
from tollkeeper.engine.offline.suggest.search import SearchAims
from tollkeeper.engine.offline.suggest.suggest import suggest
from tollkeeper.engine.offline.suggest.table import labels_known, read_files
from tollkeeper.engine.programs.compile.python import compile_values
from tollkeeper.engine.programs.load import shipped_scorecard
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.state import Account
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule

Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

SEEDS = (811, 812, 813, 814, 815)
"""None of them was used while the learning method was chosen; docs/suggest.md names those that
were.
"""
START = datetime(2025, 6, 2, tzinfo=UTC)
PAYMENTS = 20_000
LEAST_SHARE = 0.01
"""The least share of bots: with fewer there is nothing to learn from."""
LATER = 0.8
FACTORS = (0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 10)
"""Factors for the expert's counts."""
PRICE = 5
"""How many stopped payments one affected person is worth when the expert's conditions are ordered.
"""


class Week(NamedTuple):
    """A labelled history in a file; for each payment, whether it was a bot's, and its score."""

    path: Path
    fraud: Flags
    scores: np.ndarray[Any, np.dtype[np.int64]]


class Judged(NamedTuple):
    """What the conditions met: the number of bots' payments, and of honest people's; the others are
    shares of the bots' payments, None without any, except `honest`, the share of honest ones that
    were met.
    """

    stopped: float
    people: float
    honest: float
    recall: float | None
    expert: float | None
    scorecard: float | None

    @property
    def precision(self) -> float | None:
        """None if nothing is met."""
        return self.stopped / (self.stopped + self.people) if self.stopped + self.people else None


def week(seed: int, number: int, folder: Path) -> Week:
    plan = replace(
        FIRST_HALF if seed % 2 else SECOND_HALF, payments=PAYMENTS, least=LEAST_SHARE, week=number
    )
    items = list(hard_traffic(seed, START, plan))
    lines = list(label_items(items, START))
    labelled = read_labelled(map(msgspec.json.encode, lines))
    scored = score_history(labelled, shipped_scorecard(), Environment())
    scores = [each.score for each in scored]
    left = iter(scores)
    for line in lines:
        if "payment" in line:
            line["decision"] = {"action": "allow", "score": next(left) / 100}
    path = folder / f"{seed}-{number}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    fraud = [item.bot for item in items if "payment" in item.body]
    return Week(path, np.array(fraud), np.array(scores))


def replayed(of: Week, text: str) -> Iterator[tuple[Rule, ReplayedPayment]]:
    """Yield each payment with what a rule reads and decides."""
    rule = read_file(text.encode(), KnownNames()).program
    assert isinstance(rule, Rule)
    tried = try_candidate(
        candidate_of(rule, Account(0, "files", 0)), file_history([of.path], rule, {}), 0
    )
    for each in tried:
        if isinstance(each, ReplayedPayment):
            yield rule, each


def met_by(of: Week, text: str) -> Flags:
    """Return which payments any of the rule's conditions meets; none without a rule."""
    if not text:
        return np.zeros(len(of.fraud), np.bool_)
    return np.array([each.now.condition is not None for _, each in replayed(of, text)])


def expert_conditions(of: Week) -> list[Flags]:
    """Return which payments each of the expert's conditions meets, with its counts at each factor."""
    head, *conditions = re.split(
        r"\n  condition ", Path(__file__).with_name("expert.rule").read_text()
    )
    moved = [counting(each, factor) for each in conditions for factor in FACTORS]
    numbered = (re.sub(r"^\w+", f"c{number}", each) for number, each in enumerate(moved))
    text = "\n  condition ".join([head, *numbered])
    read, found, environment = None, [], Environment()
    for rule, each in replayed(of, text):
        if read is None:
            wanted = [condition.when for condition in rule.conditions]
            read = compile_values(wanted, rule.lets, rule.histories, full_vocabulary())
        found.append(
            [met is True for met in read(each.facts, each.score, each.values, environment)]
        )
    return list(np.array(found).T)


def counting(text: str, factor: float) -> str:
    """Return the text with its counts multiplied."""
    return re.sub(r">= (\d+)(?![.\d])", lambda found: f">= {ceil(int(found[1]) * factor)}", text)


def best_of_expert(conditions: list[Flags], fraud: Flags, room: int) -> float:
    """Return the recall of the best conditions, added one by one, at `room` people at most."""
    met = np.zeros(len(fraud), np.bool_)
    while True:
        best: tuple[int, int, Flags] | None = None
        for each in conditions:
            adds = each & ~met
            stopped, people = int((adds & fraud).sum()), int((adds & ~fraud).sum())
            if people <= room and stopped > PRICE * people:
                worth = stopped - PRICE * people
                if best is None or worth > best[0]:
                    best = worth, people, each
        if best is None:
            return float((met & fraud).sum() / fraud.sum())
        room -= best[1]
        met |= best[2]


def best_score(scores: Any, fraud: Flags, room: int) -> float:
    people = sorted(scores[~fraud].tolist(), reverse=True)
    return float((scores[fraud] > people[room]).mean())


def judge(of: Week, met: Flags, expert: list[Flags], begin: int) -> Judged:
    """Judge the payments from `begin` on."""
    met, fraud = met[begin:], of.fraud[begin:]
    stopped, people = int((met & fraud).sum()), int((met & ~fraud).sum())
    honest = people / int((~fraud).sum())
    if not fraud.any():
        return Judged(stopped, people, honest, None, None, None)
    return Judged(
        stopped,
        people,
        honest,
        stopped / int(fraud.sum()),
        best_of_expert([each[begin:] for each in expert], fraud, people),
        best_score(of.scores[begin:], fraud, people),
    )


def judged(seed: int, aims: SearchAims, folder: Path) -> tuple[Judged, Judged]:
    """Judge the seed's later time, and another week."""
    weeks = [week(seed, number, folder) for number in (0, 1)]
    table = read_files([weeks[0].path], 0, labels_known({}), lambda _: None)
    text = suggest(table, aims, "suggested", "deny", lambda _: None).text
    begin = int(LATER * len(table))
    later, other = (
        judge(each, met_by(each, text), expert_conditions(each), start)
        for each, start in zip(weeks, (begin, 0), strict=True)
    )
    return later, other


def known_values(values: Iterable[float | None]) -> list[float]:
    return [each for each in values if each is not None]


def known_mean(values: Iterable[float | None]) -> float:
    """Return the mean of the known values."""
    return mean(known_values(values))


def table_columns(of: Judged) -> list[float | None]:
    """Return the table's columns."""
    return [of.precision, of.honest, of.recall, of.expert, of.scorecard]


def table_cells(values: list[float | None]) -> list[str]:
    precision, honest, *shares = values
    return [
        "–" if precision is None else f"{precision:.3f}",
        f"{100 * (honest or 0.0):.2f} %",
        *("–" if share is None else f"{share:.3f}" for share in shares),
    ]


def main() -> None:
    seeds = [int(each) for each in sys.argv[1:]] or SEEDS
    tracked = track(seeds, "seeds", console=Console(stderr=True))
    with TemporaryDirectory() as folder:
        found = [judged(seed, SearchAims(), Path(folder)) for seed in tracked]
    means: list[Judged] = []
    for title, which in (("Later time", 0), ("Another week of the same shops", 1)):
        rows = [each[which] for each in found]
        means.append(Judged(*(known_mean(each) for each in zip(*rows, strict=True))))
        cells = [table_columns(each) for each in rows]
        show(
            title,
            ["seed", "precision", "honest people met", "recall", "expert's", "the scorecard's"],
            [
                *([str(seed), *table_cells(each)] for seed, each in zip(seeds, cells, strict=True)),
                ["mean", *table_cells(table_columns(means[-1]))],
                *(
                    [
                        name,
                        *table_cells([of(known_values(each)) for each in zip(*cells, strict=True)]),
                    ]
                    for name, of in (("least", min), ("most", max), ("spread", pstdev))
                ),
            ],
        )
    show_targets(
        target
        for each, of in zip(means, ("later time", "another week"), strict=True)
        for target in (
            Target(
                f"{of}: recall above the expert's, points",
                100 * ((each.recall or 0.0) - (each.expert or 0.0)),
                at_least=10,
            ),
            Target(f"{of}: precision of all together", each.precision or 0.0, at_least=0.95),
        )
    )


if __name__ == "__main__":
    main()
