"""Changing an account's lists and tables, for HTTP and commands alike."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tollkeeper.engine.change import make_change
from tollkeeper.engine.engine import Engine
from tollkeeper.engine.journal.contract import Journal
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import hold
from tollkeeper.engine.lists.spec import Spec
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.lists import (
    find_list,
    make_list,
    put_entries,
    remove_entries,
    replace_entries,
)
from tollkeeper.engine.stored_lists import staged_count, staged_entries

PAGE = 500


@dataclass(frozen=True, slots=True)
class EntriesPage:
    """Entries ordered by value, expired ones included; `cursor` continues, None at the end."""

    entries: list[ListEntry]
    cursor: str | None


async def make(engine: Engine, account: int, by: str, name: str, spec: Spec) -> bool:
    """Make a list or table; False when it is there already. Raises `Invalid`."""
    async with engine.changing:
        made = make_list(engine.state.accounts[account], name, spec)
        if made is not None:
            await make_change(engine, account, by, made)
        return made is not None


async def put(engine: Engine, account: int, by: str, name: str, given: Sequence[object]) -> int:
    """Add or renew entries; how many. Raises `NotFound` or `Invalid`."""
    async with engine.changing:
        change, content = put_entries(engine.state.accounts[account], name, given, by)
        await make_change(engine, account, by, change, content)
        return change.count


async def remove(engine: Engine, account: int, by: str, name: str, given: Sequence[object]) -> int:
    """Remove the entries of these values; how many. Raises `NotFound` or `Invalid`."""
    async with engine.changing:
        state = engine.state.accounts[account]
        find_list(state, name)
        held = engine.force[account].contents[name]
        change, content = remove_entries(state, name, given, held)
        await make_change(engine, account, by, change, content)
        return change.count


async def replace(engine: Engine, account: int, by: str, name: str, content: int) -> int:
    """Swap a staged content in for all that the list holds; how many entries. Raises `NotFound`.

    It is brought into memory beside the traffic; the swap itself is one step.
    """
    spec = find_list(engine.state.accounts[account], name).spec
    count = await asyncio.to_thread(staged_count, engine.folder, account, name, content)
    if count is None:
        raise NotFound("content", f"nothing is staged for `{name}` under {content}")
    held = await asyncio.to_thread(hold, spec, staged_entries(engine.folder, content))
    async with engine.changing:
        change, swap = replace_entries(engine.state.accounts[account], name, content, count)
        await make_change(engine, account, by, change, swap, held)
    return count


async def page(
    journal: Journal, account: int, name: str, cursor: str | None, limit: int
) -> EntriesPage:
    """The entries of a list beyond the value `cursor`, at most `PAGE` of them."""
    batches = journal.listed(account, name, beyond=cursor)
    batch: list[ListEntry] = await asyncio.to_thread(next, batches, [])
    found = batch[: min(limit, PAGE)]
    more = len(batch) == PAGE or len(found) < len(batch)
    return EntriesPage(found, found[-1].value if more and found else None)
