"""One series: its plan, and its elements by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tollkeeper.engine.velocity import groups
from tollkeeper.engine.velocity.aggregates import recounting
from tollkeeper.engine.velocity.contract import SeriesPlan, Window
from tollkeeper.engine.velocity.decay import DecayGroups
from tollkeeper.engine.velocity.groups import Clock, Groups, Queue, Reader
from tollkeeper.engine.velocity.run import FEW
from tollkeeper.grammar.types import Number


class Memory(NamedTuple):
    """The types that hold a series' elements: those in Python or those in C.

    `few` is the most elements of a group that a read recounts, see `run.FEW`.
    """

    clock: Callable[[], Clock]
    groups: Callable[[Clock, int, bool, tuple[int, ...], int], Groups]
    queue: Callable[[], Queue]
    few: int = FEW


PLAIN = Memory(groups.Clock, groups.Groups, groups.Queue)

try:
    from tollkeeper.engine.velocity import _groups
except ImportError:
    FASTEST = PLAIN
else:
    FASTEST = Memory(_groups.Clock, _groups.Groups, _groups.Queue)


class Series:
    """A series for windows: `over` (µs) is the longest one's length, `late` (µs) how late a record may
    be.

    Records of sequence numbers up to `up_to` come from the journal, later ones from live traffic.
    """

    def __init__(
        self, plan: SeriesPlan, over: int, up_to: int, late: int, clock: Clock, memory: Memory
    ) -> None:
        self.plan = plan
        self.over = over
        self.up_to = up_to
        self.groups: Groups | DecayGroups
        if plan.half_life is None:
            self.groups = memory.groups(clock, late + over, plan.valued, plan.distinct, memory.few)
        else:
            self.groups = DecayGroups(clock, late + over, plan.half_life)
        self.put = self.groups.put
        self.take = self.groups.take

    @property
    def keys(self) -> int:
        """How many groups are held."""
        return self.groups.keys

    @property
    def entries(self) -> int:
        """How many elements are held."""
        return self.groups.entries

    def shorten(self, over: int) -> None:
        """Reduce the longest window's length to `over` (µs), if it is longer."""
        if over < self.over:
            self.groups.reach -= self.over - over
            self.over = over

    def reader(self, window: Window) -> Reader:
        """The reader of a window no longer than `over`."""
        assert window.over is not None
        if isinstance(self.groups, DecayGroups):
            return self.groups.reader(window)
        recount = recounting(window.function, window.type)
        scale = window.type.scale if isinstance(window.type, Number) else None
        return self.groups.reader(
            window, window.function, window.over, recount, -1 if scale is None else scale
        )
