"""Accounts: each has its own keys, files, lists and settings, and sees nothing of another."""

from __future__ import annotations

from tollkeeper.engine.registry.changes import (
    AccountCreated,
    AccountDeleted,
    AccountResumed,
    AccountSuspended,
)
from tollkeeper.engine.registry.errors import Conflict, NotFound
from tollkeeper.engine.registry.names import check_name
from tollkeeper.engine.registry.state import Account, Configuration


def create_account(state: Configuration, name: str) -> tuple[int, AccountCreated]:
    """The new account's number, for the journal's entry, and its creation.

    Raises `Invalid` for a name that is none and `Conflict` for one in use.
    """
    check_name("account.name", name)
    if name in state.numbers:
        raise Conflict("account.name", f"there is an account `{name}` already")
    return max([0, *state.accounts, *state.deleted]) + 1, AccountCreated(name)


def suspend_account(account: Account) -> AccountSuspended:
    """Raises `Conflict` for one that is suspended already."""
    if account.suspended_at is not None:
        raise Conflict("account", f"the account `{account.name}` is suspended already")
    return AccountSuspended()


def resume_account(account: Account) -> AccountResumed:
    """Raises `Conflict` for one that is not suspended."""
    if account.suspended_at is None:
        raise Conflict("account", f"the account `{account.name}` is not suspended")
    return AccountResumed()


def delete_account(account: Account) -> AccountDeleted:
    """Raises `Conflict` unless it was suspended before: so requests have ended, and nobody deletes
    an account in use by a slip.
    """
    if account.suspended_at is None:
        message = f"the account `{account.name}` is in use: suspend it first"
        raise Conflict("account", message)
    return AccountDeleted()


def find_account(state: Configuration, name: str) -> Account:
    """Raises `NotFound`."""
    number = state.numbers.get(name)
    if number is None:
        raise NotFound("account", f"there is no account `{name}`")
    return state.accounts[number]
