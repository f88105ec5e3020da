"""Accounts: each has its own keys, files, lists and settings, and sees nothing of another."""

from __future__ import annotations

from tollkeeper.engine.registry.changes import AccountCreated
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
    return max(state.accounts, default=0) + 1, AccountCreated(name)


def find_account(state: Configuration, name: str) -> Account:
    """Raises `NotFound`."""
    number = state.numbers.get(name)
    if number is None:
        raise NotFound("account", f"there is no account `{name}`")
    return state.accounts[number]
