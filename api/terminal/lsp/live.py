"""Live data for hovering: which windows an account has, and what its payments contain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx
import msgspec

from tollkeeper.api.client.callers import AsyncTollkeeper
from tollkeeper.api.client.calls import RequestError, UnansweredError
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.programs.compile.shown import shown_duration
from tollkeeper.engine.programs.cost import series_cost
from tollkeeper.engine.read_folder import open_picture
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.errors import Refused
from tollkeeper.engine.search.field_figures import FieldFigure, field_figures
from tollkeeper.grammar import program as p

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


FieldFigures: TypeAlias = Mapping[str, FieldFigure]

HOVER_WAIT_S: Final = 2.0
"""How long hovering waits for figures; later ones are shown the next time."""
ANSWER_S: Final = 30.0
PAUSE_S: Final = 60.0
"""The pause before the next request after a failure."""


@dataclass(frozen=True, slots=True)
class LiveAccount:
    """The account whose figures are shown, and its data folder."""

    name: str
    data: JournalSource

    async def read(self) -> FieldFigures:
        """Raises `JournalError`, `Refused`."""

        async def ask() -> FieldFigures:
            async with open_picture(self.data) as picture:
                number = find_account(picture.state, self.name).number
                return await field_figures(picture.journal, number)

        return await asyncio.to_thread(asyncio.run, ask())


@dataclass(frozen=True, slots=True)
class LiveService:
    """The service whose figures are shown, and a key that may read the account's payments."""

    url: str
    key: str

    async def read(self) -> FieldFigures:
        """Raises `RequestError`, `UnansweredError`, decoding errors, and `ValueError` for a key that
        can't be one.
        """
        async with AsyncTollkeeper(self.url, self.key, timeout=ANSWER_S, attempts=1) as client:
            answer = await client.call("GET", "/figures/fields")
        return msgspec.convert(answer, _FieldsAnswer).fields


class _FieldsAnswer(msgspec.Struct):
    fields: dict[str, FieldFigure]


_FAILURES = (
    JournalError,
    Refused,
    RequestError,
    UnansweredError,
    httpx.InvalidURL,
    msgspec.MsgspecError,
    ValueError,
)


class LiveFigures:
    """Reads the figures once, in the background."""

    def __init__(
        self, read: Callable[[], Awaitable[FieldFigures]], complain: Callable[[str], None]
    ) -> None:
        self._read = read
        self._complain = complain
        self._reading: asyncio.Task[FieldFigures] | None = None
        self._failed_at: float | None = None

    async def known(self) -> FieldFigures:
        """Return the figures by field; empty while they aren't there. Only the first failure is
        reported.
        """
        if self._reading is None:
            if self._failed_at is not None and time.monotonic() < self._failed_at + PAUSE_S:
                return {}
            self._reading = asyncio.create_task(self._figures())
        done, _ = await asyncio.wait([self._reading], timeout=HOVER_WAIT_S)
        return done.pop().result() if done else {}

    async def _figures(self) -> FieldFigures:
        try:
            found = await self._read()
        except _FAILURES as error:
            if self._failed_at is None:
                self._complain(f"the account's figures can't be read: {error}")
            self._failed_at = time.monotonic()
            found = {}
        if not found:
            self._reading = None
        return found


def figure_in_words(figure: FieldFigure) -> str:
    lines = [f"In {figure.share:.0%} of the newest {figure.payments:,} payments."]
    if figure.common:
        lines.append(", ".join(f"`{word}` {share:.0%}" for word, share in figure.common.items()))
    if figure.quarters:
        lines.append(f"Quarters: {', '.join(figure.quarters)}.")
    return "\n".join(lines)


def cost_in_words(histories: Iterable[p.History]) -> str:
    lines = []
    for each in histories:
        cost = series_cost(each)
        if cost is None:
            lines.append("Keeps the moments of each key on disk, as far back as history is kept.")
        else:
            lines.append(
                f"Keeps {shown_duration(cost.reach)} of {each.series.collection} in memory: about"
                f" {cost.bytes_a_key:g} bytes a key, {cost.bytes_a_record:g} for each further one."
            )
    return "\n\n".join(dict.fromkeys(lines))
