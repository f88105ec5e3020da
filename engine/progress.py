"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[float], None]
"""Called now and then with the share that is done, from 0 to 1."""


def unwatched(_share: float) -> None:
    """The progress of work that nobody waits to hear of."""
