"""Traffic whose circumstances are drawn anew with each seed: the scorecard is judged by it.

    for item in hard_traffic(seed=301, start=datetime(2025, 6, 2, tzinfo=UTC)):
        item.body, item.bot, item.kind

What the demo's traffic fixes (rates of refusal, prices, headers, fingerprints, hours, response
codes, the share of bots) `scene.py` draws. `crowd.py` says what each kind of people does,
`campaigns.py` what each family of attacks does, `stream.py` puts it in one order. Families and
kinds stand in two halves, so that what is estimated from the one can be judged by the other.
"""

from tollkeeper.bench.hard_traffic.stream import (
    FIRST_HALF,
    SECOND_HALF,
    HardPlan,
    hard_traffic,
)

__all__ = ["FIRST_HALF", "SECOND_HALF", "HardPlan", "hard_traffic"]
