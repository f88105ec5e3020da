"""Print a labelled history: `python -m tollkeeper.api.terminal.traffic --seed 1 --hours 24`."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime

from tollkeeper.api.terminal.traffic import ONE_DAY, label_items, traffic


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tollkeeper.api.terminal.traffic", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument(
        "--scale", type=float, default=1, help="multiply the actors of a day by this"
    )
    parser.add_argument("--start", type=datetime.fromisoformat, default="2025-06-02T00:00:00Z")
    options = parser.parse_args()
    start = options.start if options.start.tzinfo else options.start.replace(tzinfo=UTC)
    plan = replace(ONE_DAY, hours=options.hours).scaled(options.scale)
    for line in label_items(traffic(options.seed, start, plan), start):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
