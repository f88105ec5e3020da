"""What hovering adds of the service: what windows keep, and what an account's payments hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class LiveAccount:
    """The account whose figures are shown, and the data folder it is in."""

    name: str
    data: JournalSource


async def figures_of(account: LiveAccount) -> Mapping[str, FieldFigure]:
    """The figures by field; none when the folder can't be read."""

    async def read() -> Mapping[str, FieldFigure]:
        async with open_picture(account.data) as picture:
            number = find_account(picture.state, account.name).number
            return await field_figures(picture.journal, number)

    try:
        return await asyncio.to_thread(asyncio.run, read())
    except (JournalError, Refused):
        return {}


def figure_in_words(figure: FieldFigure) -> str:
    lines = [f"In {figure.share:.0%} of the newest {figure.payments:,} payments."]
    if figure.common:
        lines.append(", ".join(f"`{word}` {share:.0%}" for word, share in figure.common))
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
