"""Traffic whose circumstances are drawn from the seed: the scorecard is judged on it.

    for item in hard_traffic(seed=301, start=datetime(2025, 6, 2, tzinfo=UTC)):
        item.body, item.bot, item.kind

`scene.py` draws what the demo's traffic fixes: rates of refusal, prices, headers, fingerprints,
hours, response codes, the share of bots. `crowd.py` has the kinds of people, `campaigns.py` the
families of attacks, `stream.py` merges them in time order. Families and kinds are in two halves, so
that what is estimated on one can be judged on the other.
"""

from tollkeeper.bench.hard_traffic.stream import (
    FIRST_HALF,
    SECOND_HALF,
    HardPlan,
    hard_traffic,
)

__all__ = ["FIRST_HALF", "SECOND_HALF", "HardPlan", "hard_traffic"]
