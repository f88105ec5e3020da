"""An attack that goes on while one looks: card numbers of one BIN are guessed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from tollkeeper.api.terminal.traffic.attempts import TrafficSpan, creation, update
from tollkeeper.api.terminal.traffic.bots import bin_enumeration
from tollkeeper.api.terminal.traffic.stream import TrafficItem

ATTACK = "bin_enumeration"
_SEED = 3  # its attack is at one merchant in reais, and a long one


def guess_cards() -> Iterator[tuple[TrafficItem, dict[str, Any]]]:
    """Some hundred payments, each answered when it is asked for, with its issuer's update."""
    for made in bin_enumeration(Random(_SEED), TrafficSpan(datetime.now(UTC), hours=1)):
        start = datetime.now(UTC) - timedelta(seconds=made.answered)
        item = TrafficItem(made.at, {"payment": creation(made, start)}, bot=True, kind=ATTACK)
        yield item, update(made, start)
