"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

Progress: TypeAlias = Callable[[float], None]
"""Called now and then with the share that is done, from 0 to 1."""


class JobProgress(Protocol):
    """The progress of a job, which may also show something that it has found before its end."""

    def __call__(self, share: float, /) -> None: ...

    def show(self, found: Any, /) -> None: ...


def unwatched(_share: float) -> None:
    """Ignore the progress."""
