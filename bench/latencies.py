"""Percentiles of payments' latencies over many turns, and how sure their ratios are."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from random import Random
from statistics import quantiles

from tollkeeper.bench.load import LoadResult

SEED = 1
DRAWS = 1000


def compare(
    turns: Sequence[LoadResult], *others: Sequence[LoadResult]
) -> tuple[float, float, float]:
    """Return by how much the p99 of some turns is that of others, and the interval that holds 95 of
    100 such ratios of as many turns drawn from them.
    """
    own, beside = Latencies(turns), Latencies(*others)
    count = len(turns)
    random = Random(SEED)

    def ratio(drawn: Sequence[int]) -> float:
        times = [drawn.count(turn) for turn in range(count)]
        return own.percentile(0.99, times) / beside.percentile(0.99, times)

    drawn = quantiles([ratio(random.choices(range(count), k=count)) for _ in range(DRAWS)], n=40)
    return ratio(range(count)), drawn[0], drawn[-1]


class Latencies:
    """The latencies (µs) of some arms' turns."""

    def __init__(self, *arms: Sequence[LoadResult]) -> None:
        self._payments = [0] * len(arms[0])
        counted = []
        for turns in arms:
            for turn, taken in enumerate(turns):
                self._payments[turn] += sum(taken.latencies.values())
                counted += [(latency, turn, often) for latency, often in taken.latencies.items()]
        self._slowest_first = sorted(counted, reverse=True)

    def percentile(self, part: float, times: Sequence[int]) -> float:
        """Return the ms that this part of the payments don't exceed, where each turn counts so many
        times.
        """
        slower = (1 - part) * sum(map(mul, self._payments, times))
        for latency, turn, often in self._slowest_first:
            slower -= times[turn] * often
            if slower < 0:
                return latency / 1000
        raise ValueError("no payment was answered")
