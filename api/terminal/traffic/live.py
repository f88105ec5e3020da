"""A live attack: card numbers of one BIN are guessed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tollkeeper.api.terminal.traffic.attempts import TrafficSpan, creation, update
from tollkeeper.api.terminal.traffic.bots import bin_enumeration
from tollkeeper.api.terminal.traffic.stream import TrafficItem

ATTACK = "bin_enumeration"
_SEED = 3  # with this seed the attack is long, and at one merchant in reais


def guess_cards() -> Iterator[tuple[TrafficItem, dict[str, Any]]]:
    """Yield some hundred payments, each timed when it is requested, with its issuer's update."""
    for made in bin_enumeration(Random(_SEED), TrafficSpan(datetime.now(UTC), hours=1)):
        start = datetime.now(UTC) - timedelta(seconds=made.answered)
        item = TrafficItem(made.at, {"payment": creation(made, start)}, bot=True, kind=ATTACK)
        yield item, update(made, start)
