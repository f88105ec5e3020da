"""Thresholds on a terminal: the scores of people and frauds, and the result of each pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from tollkeeper.api.http.thresholds import ThresholdsAnswer, ThresholdsOutcome

_BARS = " ▁▂▃▄▅▆▇█"
_BANDS = 5
"""The number of scores per bar."""


def threshold_lines(answer: ThresholdsAnswer) -> Iterator[Text]:
    ripe = sum(band.people + band.frauds for band in answer.bands)
    unripe = sum(band.unripe for band in answer.bands)
    if not ripe:
        yield Text("no scored payment has a label yet, or is 45 days old")
        return
    yield Text(f"score    0.0{' ' * 15}1.0")
    yield Text.assemble("people   ", (_bars([band.people for band in answer.bands]), "green"))
    yield Text.assemble("frauds   ", (_bars([band.frauds for band in answer.bands]), "red"))
    yield Text()
    rows = [("now", answer.now)]
    if answer.asked.thresholds != answer.now.thresholds:
        rows.append(("asked", answer.asked))
    if answer.cheapest is not None:
        rows.append(("cheapest", answer.cheapest))
    yield Text(
        f"{'':8} {'challenge':>9} {'deny':>5}   {'people challenged':>17} {'denied':>7}"
        f"   {'frauds challenged':>17} {'denied':>7}   {'precision':>9}   cost"
    )
    for name, found in rows:
        yield Text(_row(name, found))
    yield Text()
    yield Text(f"{ripe:,} payments; {unripe:,} more have no label and are younger than 45 days")


def _bars(counts: Sequence[int]) -> str:
    sums = [sum(counts[start : start + _BANDS]) for start in range(0, len(counts), _BANDS)]
    most = max(sums)
    return "".join(_BARS[-(-count * (len(_BARS) - 1) // most) if most else 0] for count in sums)


def _row(name: str, found: ThresholdsOutcome) -> str:
    pair, people, frauds = found.thresholds, found.people, found.frauds
    cost = ", ".join(f"{amount} {currency}" for currency, amount in found.cost.items())
    return (
        f"{name:8} {pair.challenge:9.2f} {pair.deny:5.2f}"
        f"   {_percent(people.challenged_share):>17} {_percent(people.denied_share):>7}"
        f"   {_percent(frauds.challenged_share):>17} {_percent(frauds.denied_share):>7}"
        f"   {_percent(found.precision):>9}   {cost}"
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
