"""Accounts: each has its own keys, files, lists and settings, and no access to another's."""

from __future__ import annotations

from typing import Final

from tollkeeper.engine.journal.contract import Shard
from tollkeeper.engine.registry.changes import (
    AccountCreated,
    AccountDeleted,
    AccountResumed,
    AccountSuspended,
)
from tollkeeper.engine.registry.errors import Conflict, Forbidden, NotFound
from tollkeeper.engine.registry.names import check_name
from tollkeeper.engine.registry.state import Account, Configuration

TEST_SUFFIX: Final = ":test"
"""Ends the name of a test account; no other account's name has a colon."""
ALONE: Final = Shard()
"""The only shard, where one journal has all accounts."""


def create_account(
    state: Configuration, name: str, shard: Shard = ALONE
) -> tuple[int, AccountCreated]:
    """The number and the creation of a new account, for the journal of this shard.

    Raises `Invalid` for an invalid name and `Conflict` for one in use.
    """
    check_name("account.name", name)
    if name in state.numbers:
        raise Conflict("account.name", f"there is an account `{name}` already")
    return _next_number(state, shard), AccountCreated(name)


def suspend_account(account: Account) -> AccountSuspended:
    """Raises `Conflict` for one that is suspended already, `Forbidden` for a test account."""
    check_live(account)
    if account.suspended_at is not None:
        raise Conflict("account", f"the account `{account.name}` is suspended already")
    return AccountSuspended()


def resume_account(account: Account) -> AccountResumed:
    """Raises `Conflict` for one that is not suspended, `Forbidden` for a test account."""
    check_live(account)
    if account.suspended_at is None:
        raise Conflict("account", f"the account `{account.name}` is not suspended")
    return AccountResumed()


def delete_account(account: Account) -> AccountDeleted:
    """Raises `Conflict` unless the account is suspended: then no requests are under way, and an
    account in use can't be deleted by mistake.
    """
    if account.suspended_at is None:
        message = f"the account `{account.name}` is in use: suspend it first"
        raise Conflict("account", message)
    return AccountDeleted()


def create_test_account(
    state: Configuration, live: Account, shard: Shard = ALONE
) -> tuple[int, AccountCreated]:
    """The number and the creation of a test account for a live account."""
    return _next_number(state, shard), AccountCreated(f"{live.name}{TEST_SUFFIX}", live.number)


def sharing(state: Configuration, number: int) -> tuple[int, ...]:
    """The numbers of the account and of its test account, which shares its files and settings."""
    test = state.accounts[number].test
    return (number,) if test is None else (number, test)


def check_live(account: Account) -> None:
    """Raise `Forbidden` for a test account, whose configuration is that of its live account."""
    if account.live is not None:
        message = "this is changed in the live account, which shares it with its test account"
        raise Forbidden("account", message)


def find_account(state: Configuration, name: str) -> Account:
    """Raises `NotFound`."""
    number = state.numbers.get(name)
    if number is None:
        raise NotFound("account", f"there is no account `{name}`")
    return state.accounts[number]


def _next_number(state: Configuration, shard: Shard) -> int:
    """The next free number; each shard has numbers of its own."""
    first = max([0, *state.accounts, *state.deleted]) + 1
    return first + (shard.number - first) % shard.of
