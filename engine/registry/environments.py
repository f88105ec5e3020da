"""An account's environment (lists, tables, rates, time zone), now and at earlier sequence numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from zoneinfo import ZoneInfo

from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.lists.environment import EntryList, Environment, Table
from tollkeeper.engine.lists.past import look_up
from tollkeeper.engine.lists.spec import ListSpec, TableSpec
from tollkeeper.engine.registry.past_states import PastStates
from tollkeeper.engine.registry.settings import scaled_rates
from tollkeeper.engine.registry.state import Account


def account_environment(account: Account, contents: Mapping[str, Contents]) -> Environment:
    """The account's environment; `contents` are its lists and tables by name.

    It is computed again when the account has changed: folding a change gives another `Account`.
    """
    return Environment(
        lists={name: held for name, held in contents.items() if isinstance(held.spec, ListSpec)},
        tables={name: held for name, held in contents.items() if isinstance(held.spec, TableSpec)},
        rates=scaled_rates(account.settings),
        time_zone=ZoneInfo(account.settings.time_zone),
    )


class PastEnvironments:
    """An account's environment as of a sequence number.

    `now` is the present environment, None where it is not in memory; what has changed since is
    looked up in the journal.
    """

    def __init__(
        self,
        journal: Journal,
        past_states: PastStates,
        account: Account,
        now: Environment | None = None,
    ) -> None:
        self._journal = journal
        self._past_states = past_states
        self._account = account
        self._now = now
        changed = (each.changed for each in account.lists.values())
        self._changed = max([account.settings_changed, *changed])

    def at(self, sequence: int) -> Environment:
        """The environment that the record at this sequence number was decided in; as far back as
        the history is kept."""
        now = self._now
        if now is not None and sequence > self._changed:
            return now
        lists: dict[str, EntryList] = {} if now is None else dict(now.lists)
        tables: dict[str, Table] = {} if now is None else dict(now.tables)
        for name, each in self._account.lists.items():
            if now is None or sequence <= each.changed:
                find = partial(self._journal.list_entries_at, self._account.number, name, sequence)
                found = look_up(each.spec, find)
                if isinstance(each.spec, ListSpec):
                    lists[name] = found
                else:
                    tables[name] = found
        rates = self._rates_at(sequence)
        return Environment(lists, tables, rates, ZoneInfo(self._account.settings.time_zone))

    def _rates_at(self, sequence: int) -> Mapping[tuple[str, str], int]:
        changed = self._account.rates_changed
        held = bisect_left(changed, sequence)
        if held == len(changed):
            return scaled_rates(self._account.settings)
        return PastRates(self._past_states, changed[held - 1]) if held else {}


class PastRates(Mapping[tuple[str, str], int]):
    """The rates since the sequence number `changed`, read when the first of them is needed."""

    def __init__(self, past_states: PastStates, changed: int) -> None:
        self._past_states = past_states
        self._changed = changed

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], int]:
        return self._past_states.rates(self._changed)

    def __getitem__(self, pair: tuple[str, str]) -> int:
        return self._names[pair]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
