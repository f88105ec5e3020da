"""Made-up payment traffic, people and bots, deterministic by seed and honest in its labels.

    for item in traffic(seed=1, start=datetime(2025, 6, 2, tzinfo=UTC)):
        item.body, item.bot, item.kind

`world.py` says who takes part, `headers.py` what their clients send, `people.py` and `bots.py`
what each kind does, `stream.py` puts it in one order.
"""

from tollkeeper.api.terminal.traffic.stream import (
    ONE_DAY,
    TrafficItem,
    TrafficPlan,
    label_items,
    traffic,
)

__all__ = ["ONE_DAY", "TrafficItem", "TrafficPlan", "label_items", "traffic"]
