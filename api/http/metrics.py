"""The service's metrics, in Prometheus' text format; they are updated by the event loop alone.

No label contains a name: accounts are numbers, routes are paths as documented. Request durations
and scores, which make up most lines, are formatted here: the library takes ten times as long, and
would block the event loop.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from operator import itemgetter
from platform import python_version
from shutil import disk_usage
from sqlite3 import sqlite_version
from typing import Any

from prometheus_client import REGISTRY, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tollkeeper.engine.journal.schema import NEWEST
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.release import this_release
from tollkeeper.engine.runtime import Engine

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of durations in seconds; a last bucket has none."""
_SCORES = (0, 2, 3, 5, 10, 20, 35, 50, 70, 85, 95)
"""Lower bounds of the score buckets, in hundredths; narrow where most scores lie."""
_BUILD = InfoMetricFamily(
    "toll_build",
    "The release that runs.",
    {
        "version": this_release(),
        "python": python_version(),
        "sqlite": sqlite_version,
        "journal": str(NEWEST),
    },
)
_BOUNDS = (*map(str, _BUCKETS), "+Inf")


@dataclass(slots=True)
class Durations:
    """The number of requests in each bucket, and the sum of their seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS))
    seconds: float = 0.0


@dataclass(slots=True)
class Figures:
    """The counters of the process. `durations` are by route and first digit of the status,
    `requests` by route, status and reason of refusal (empty without one), `payments` by action,
    `scores` the payments by account and bucket of `_SCORES`. `engines` are those of the process, by
    shard. On nodes that share journals, `forwarded` counts requests answered by another owner,
    `takeovers` counts takings over of journals, `behind` is the number of entries of a shard that
    this node has not applied, and `standby_awaited` tells whether commits wait for a standby.
    """

    durations: dict[tuple[str, int], Durations] = field(default_factory=dict)
    requests: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    payments: Counter[str] = field(default_factory=Counter)
    scores: dict[int, list[int]] = field(default_factory=dict)
    updates: int = 0
    events: int = 0
    forwarded: int = 0
    takeovers: int = 0
    behind: dict[int, int] = field(default_factory=dict)
    standby_awaited: bool | None = None
    engines: dict[int, Engine] = field(default_factory=dict)

    def watch(self, engine: Engine) -> None:
        """Read the metrics of a shard from this engine from now on."""
        self.engines[engine.journal.shard.number] = engine

    def count(self, route: str, status: int, seconds: float, noted: Mapping[str, Any]) -> None:
        """Count a request by its answer and by what its handler added to the log."""
        durations = self.durations.get((route, status // 100))
        if durations is None:
            durations = self.durations[route, status // 100] = Durations()
        durations.counts[bisect_left(_BUCKETS, seconds)] += 1
        durations.seconds += seconds
        self.requests[route, status, noted.get("reason", "")] += 1
        if "action" in noted:
            self.payments[noted["action"] or "none"] += 1
        elif "became" in noted:
            self.updates += 1
        elif "kept" in noted:
            self.events += noted["kept"]

    def count_score(self, account: int, score: int) -> None:
        """Count a payment of the account by its score, in hundredths."""
        parts = self.scores.get(account)
        if parts is None:
            parts = self.scores[account] = [0] * len(_SCORES)
        parts[bisect_right(_SCORES, score) - 1] += 1


async def exposition(figures: Figures) -> bytes:
    """Return all metrics as text. Raises `Unavailable` if the outbox can't be read."""
    others = _ScrapeCollector(await families(figures))
    written = chain(_durations(figures), _scores(figures))
    return "".join(written).encode() + generate_latest(others)


async def families(figures: Figures) -> list[Metric]:
    """Return all metrics except durations, scores and the process's own. Raises as `exposition`."""
    engines = [engine for _, engine in sorted(figures.engines.items())]
    pending = sum([await each.outbox.read(outbox.pending) for each in engines])
    state = _state_metrics(engines, await engines[0].journal.size(), pending)
    return [*_request_metrics(figures), *state, *await _windows(engines)]


def _durations(figures: Figures) -> Iterator[str]:
    name = "toll_request_duration_seconds"
    yield f"# HELP {name} From a request's head to the end of its answer.\n"
    yield f"# TYPE {name} histogram\n"
    for (route, digit), durations in sorted(figures.durations.items()):
        labels = f'route="{route}",status="{digit}xx"'
        for bound, count in zip(_BOUNDS, accumulate(durations.counts), strict=True):
            yield f'{name}_bucket{{le="{bound}",{labels}}} {count}\n'
        yield f"{name}_count{{{labels}}} {sum(durations.counts)}\n"
        yield f"{name}_sum{{{labels}}} {durations.seconds}\n"


def _scores(figures: Figures) -> Iterator[str]:
    name = "toll_scores"
    yield f"# HELP {name}_total Payments by their score, in parts that begin at `least`.\n"
    yield f"# TYPE {name}_total counter\n"
    for account, parts in sorted(figures.scores.items()):
        for least, count in zip(_SCORES, parts, strict=True):
            yield f'{name}_total{{account="{account}",least="{least / 100:.2f}"}} {count}\n'


class _ScrapeCollector(Collector):
    """The process's own metrics and the given ones, for one scrape."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return chain(REGISTRY.collect(), self._metrics)


def _request_metrics(figures: Figures) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "toll_requests",
        "Requests by their status, and the first reason of a refusal.",
        labels=("route", "status", "reason"),
    )
    for (route, status, reason), count in sorted(figures.requests.items()):
        requests.add_metric((route, str(status), reason), count)
    yield requests
    payments = CounterMetricFamily(
        "toll_payments", "Payments created, by the action that was recommended.", labels=("action",)
    )
    for action, count in sorted(figures.payments.items()):
        payments.add_metric((action,), count)
    yield payments
    yield CounterMetricFamily(
        "toll_updates", "Updates of payments that were kept.", figures.updates
    )
    yield CounterMetricFamily("toll_events", "Events that were kept.", figures.events)
    yield CounterMetricFamily(
        "toll_forwarded", "Requests that another node, the owner, answered.", figures.forwarded
    )
    yield CounterMetricFamily(
        "toll_takeovers", "Times that this node took the journal over.", figures.takeovers
    )
    yield GaugeMetricFamily(
        "toll_entries_behind",
        "Entries that a follower has not counted yet.",
        sum(figures.behind.values()),
    )
    if figures.standby_awaited is not None:
        yield GaugeMetricFamily(
            "toll_standby_awaited",
            "Whether the database keeps what is acknowledged on a standby, too.",
            figures.standby_awaited,
        )


def _state_metrics(engines: Sequence[Engine], journal_bytes: int, pending: int) -> Iterator[Metric]:
    journals = [each.journal for each in engines]
    yield _BUILD
    disk = disk_usage(engines[0].folder)
    yield GaugeMetricFamily("toll_disk_bytes", "Bytes of the data folder's disk.", disk.total)
    yield GaugeMetricFamily("toll_disk_free_bytes", "How many of them are free.", disk.free)
    yield GaugeMetricFamily(
        "toll_journal_bytes",
        "Bytes of the journal's file.",
        journal_bytes,
    )
    yield GaugeMetricFamily(
        "toll_journal_failing",
        "Whether the last write to the journal failed.",
        any(each.write_failure() is not None for each in journals),
    )
    yield GaugeMetricFamily(
        "toll_damaged_entries",
        "Entries that can't be read and were passed over at the start.",
        sum(len(each.damage.passed_over) for each in engines),
    )
    yield GaugeMetricFamily(
        "toll_clock_plausible",
        "Whether the clock fits the journal; nothing is purged while it does not.",
        all(each.clock_watch.is_plausible for each in engines),
    )
    yield GaugeMetricFamily(
        "toll_rebuilt_ratio",
        "How much of the windows is filled, from 0 to 1.",
        sum(each.rebuilt for each in engines) / len(engines),
    )
    yield GaugeMetricFamily(
        "toll_ready",
        "Whether the windows are whole and traffic may come.",
        all(each.ready.is_set() or each.forwards_to is not None for each in engines),
    )
    yield GaugeMetricFamily(
        "toll_owner",
        "Of how many journals this process is the owner, and decides.",
        sum(each.ready.is_set() for each in engines),
    )
    yield GaugeMetricFamily("toll_shards", "How many journals there are.", len(engines))
    yield GaugeMetricFamily(
        "toll_journal_waiting",
        "Entries that wait to be on disk.",
        sum(each.queue_length() for each in journals),
    )
    yield CounterMetricFamily(
        "toll_journal_errors",
        "Writes to the journal that failed.",
        sum(each.write_failures() for each in journals),
    )
    yield GaugeMetricFamily(
        "toll_shadows_waiting",
        "Shadows that wait to be evaluated.",
        sum(each.shadows.unfinished for each in engines),
    )
    yield CounterMetricFamily(
        "toll_shadows_skipped",
        "Shadows passed over because too many waited.",
        sum(each.shadows.lost for each in engines),
    )
    yield GaugeMetricFamily(
        "toll_deliveries_pending",
        "Notices that are still to be delivered to a webhook.",
        pending,
    )


async def _windows(engines: Sequence[Engine]) -> list[Metric]:
    used = GaugeMetricFamily(
        "toll_windows_entries", "Elements that an account's windows hold.", labels=("account",)
    )
    cap = GaugeMetricFamily("toll_windows_cap", "How many they may hold.", labels=("account",))
    over = GaugeMetricFamily(
        "toll_windows_over_cap",
        "Whether a window was given up at the cap, so that its values are missing.",
        labels=("account",),
    )
    accounts = {number: each for each in engines for number in each.state.accounts}
    for number, engine in sorted(accounts.items(), key=itemgetter(0)):
        status = await engine.windows.status(number)
        account = (str(number),)
        used.add_metric(account, status.entries)
        cap.add_metric(account, status.cap)
        over.add_metric(account, status.over_cap)
    total = GaugeMetricFamily(
        "toll_windows_total_cap",
        "How many elements the windows of all accounts may hold together.",
        sum(each.windows.total_cap for each in engines),
    )
    return [used, cap, over, total]
