"""Generated payment traffic of people and bots, deterministic by seed and correctly labelled.

    for item in traffic(seed=1, start=datetime(2025, 6, 2, tzinfo=UTC)):
        item.body, item.bot, item.kind

`world.py` has the participants, `headers.py` what their clients send, `people.py` and `bots.py`
what each kind does, `stream.py` merges it in time order.
"""

from tollkeeper.api.terminal.traffic.stream import (
    ONE_DAY,
    TrafficItem,
    TrafficPlan,
    label_items,
    traffic,
)

__all__ = ["ONE_DAY", "TrafficItem", "TrafficPlan", "label_items", "traffic"]
