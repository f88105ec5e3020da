"""Change an account's lists and tables, for HTTP and commands alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tollkeeper.engine.journal.entries import Addition, ListEntry, Removal
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.journal.lock import mark_import
from tollkeeper.engine.lists.contents import Contents, add_entries, build_contents, remove_values
from tollkeeper.engine.lists.past import holding_values
from tollkeeper.engine.lists.spec import Spec
from tollkeeper.engine.make_change import change_account, make_change
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.changes import Change, EntriesChanged, ListMade
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.lists import (
    check_entries_alone,
    check_entry_count,
    find_list,
    make_list,
    put_entries,
    read_spec,
    remove_entries,
    replace_entries,
)
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.runtime import Engine

T = TypeVar("T", bound=Change)

LIST_PAGE = 500
_FEW = 10
"""Up to this many entries are read in the event loop; more are read in a thread."""


@dataclass(frozen=True, slots=True)
class EntriesPage:
    """Entries ordered by value, expired ones included; `cursor` continues, None at the end."""

    entries: list[ListEntry]
    cursor: str | None


async def decide_entries(
    engine: Engine,
    account: int,
    by: str,
    name: str,
    count: int,
    decide: Callable[[Account, Contents], tuple[T, Addition | Removal | None]],
) -> T:
    """Make the change that `decide` gives for the account and the list's present contents; returns
    it. `count` is how many entries it is about.

    Raises what `decide` raises, and `NotFound` for the list."""

    def work() -> tuple[T, Addition | Removal | None, Contents | None]:
        state, all_present = engine.state.accounts[account], engine.active[account].contents
        find_list(state, name)
        present = all_present[name]
        change, content = decide(state, present)
        match content:
            case None:
                return change, None, None
            case Addition(entries=entries):
                check_entry_count(_count_entries(all_present) + len(entries))
                return change, content, add_entries(present, entries)
            case Removal(values=values):
                return change, content, remove_values(present, values)

    async with engine.changing:
        made = work() if count <= _FEW else await asyncio.to_thread(work)
        await make_change(engine, account, by, *made)
    return made[0]


async def list_page(
    journal: Journal, account: int, name: str, cursor: str | None, limit: int
) -> EntriesPage:
    """The entries of a list after the value `cursor`, at most `LIST_PAGE`."""
    batches = journal.list_entries(account, name, beyond=cursor)
    batch: list[ListEntry] = await asyncio.to_thread(next, batches, [])
    found = batch[: min(limit, LIST_PAGE)]
    more = len(batch) == LIST_PAGE or len(found) < len(batch)
    return EntriesPage(found, found[-1].value if more and found else None)


async def met_page(
    journal: Journal,
    account: int,
    name: str,
    spec: Spec,
    value: str,
    cursor: str | None,
    limit: int,
) -> EntriesPage:
    """As `list_page`, only the entries that hold a value: of networks those that it lies in, of
    prefixes those that it begins with.

    Raises `ValueError` for a value that no entry of the list can hold.
    """
    values = tuple(holding_values(spec, value))
    last = journal.last_sequence()
    held = await asyncio.to_thread(journal.list_entries_at, account, name, last, values)
    beyond = [each for each in held if cursor is None or each.value > cursor]
    found = sorted(beyond, key=lambda each: each.value)[:limit]
    return EntriesPage(found, found[-1].value if len(beyond) > limit else None)


def _count_entries(contents: Mapping[str, Contents], without: str | None = None) -> int:
    """How many entries an account's lists and tables hold at most, those of `without` aside."""
    return sum(each.index.held.most for name, each in contents.items() if name != without)


class MakeList(AccountVerb, frozen=True):
    """Make a list or table; `spec` in the form of `PUT /lists/{name}`.

    The effect's `count` is 0 when it is there already. Raises `Invalid`.
    """

    name: str
    spec: dict[str, Any]

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account, spec = self.number(engine), read_spec(self.spec)

        def decide(state: Account) -> ListMade | None:
            return make_list(state, self.name, spec)

        made = await change_account(engine, account, author, decide)
        return Effect(count=int(made is not None))


class PutEntries(AccountVerb, frozen=True):
    """Add or renew entries, in the form of `PUT /lists/{name}/entries`.

    Raises `NotFound`, `Invalid`, and `Forbidden` where another person must approve.
    """

    name: str
    entries: list[Any]

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        def decide(state: Account, _held: Contents) -> tuple[EntriesChanged, Addition]:
            check_entries_alone(state)
            return put_entries(state, self.name, self.entries, author)

        number, count = self.number(engine), len(self.entries)
        change = await decide_entries(engine, number, author, self.name, count, decide)
        return Effect(count=change.count)


class RemoveEntries(AccountVerb, frozen=True):
    """Remove the entries of these values. Raises as `PutEntries`."""

    name: str
    values: list[Any]

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        def decide(state: Account, held: Contents) -> tuple[EntriesChanged, Removal]:
            check_entries_alone(state)
            return remove_entries(state, self.name, self.values, held)

        number, count = self.number(engine), len(self.values)
        change = await decide_entries(engine, number, author, self.name, count, decide)
        return Effect(count=change.count)


class ReplaceEntries(AccountVerb, frozen=True):
    """Replace all of a list's entries by a staged content.

    The content is loaded in a thread; the replacement itself is one step. Raises `NotFound`,
    and `Forbidden` where another person must approve.
    """

    name: str
    content: int

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account, name = self.number(engine), self.name
        spec = find_list(engine.state.accounts[account], name).spec
        check_entries_alone(engine.state.accounts[account])
        journal = engine.journal
        # Keeps the staged content from being removed should the command that staged it end.
        with mark_import(engine.folder):
            count = await asyncio.to_thread(journal.count_staged, account, name, self.content)
            if count is None:
                raise NotFound("content", f"nothing is staged for `{name}` under {self.content}")
            check_entry_count(_count_entries(engine.active[account].contents, name) + count)
            staged = journal.staged_entries(self.content)
            held = await asyncio.to_thread(build_contents, spec, staged)
            async with engine.changing:
                state = engine.state.accounts[account]
                check_entries_alone(state)
                change, swap = replace_entries(state, name, self.content, count)
                await make_change(engine, account, author, change, swap, held)
        return Effect(count=count)
