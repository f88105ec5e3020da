"""How many examples a property is tried with: few at each change, four times as many each night."""

from __future__ import annotations

import os

NIGHT = "TOLLKEEPER_NIGHT" in os.environ
"""Set where there is time: .github/workflows/night.yml."""


def examples(by_night: int) -> int:
    """How many of them are tried in this run."""
    return by_night if NIGHT else by_night // 4
