"""Access of commands to a data folder: read it, or perform a verb on it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import rich_click as click

from tollkeeper.api.terminal.options import AUTHOR
from tollkeeper.api.terminal.output import refuse, refuse_all
from tollkeeper.engine.progress import unwatched

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.publish.verbs import Effect, Verb
    from tollkeeper.engine.read_folder import Picture
    from tollkeeper.engine.registry.changes import Thresholds
    from tollkeeper.engine.registry.state import Account

T = TypeVar("T")


def perform(
    data: JournalSource, verb: Verb, progress: Callable[[float], None] = unwatched
) -> Effect:
    """Perform the verb on the data folder; if it is refused, print why and exit with 1."""
    from tollkeeper.engine.publish.queue import perform_in

    with refusals():
        return perform_in(data, verb, author(), progress)


def author() -> str:
    """Return the author for the audit log: `--author`, else the user."""
    context = click.get_current_context()
    assert context is not None
    named = (context.meta.get(AUTHOR) or "").strip()
    try:
        return named or getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return f"user {os.getuid()}"


def read_data(data: JournalSource, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """Read from the data folder; if that fails, print why and exit with 1."""
    from tollkeeper.engine.read_folder import read_folder

    with refusals():
        return read_folder(data, ask)


def read_account(data: JournalSource, name: str) -> Account:
    from tollkeeper.engine.registry.accounts import find_account

    async def ask(picture: Picture) -> Account:
        return find_account(picture.state, name)

    return read_data(data, ask)


def journal_of(data: JournalSource, account: str | None) -> JournalSource:
    """Return the journal with the account; the first one if no account is given."""
    from tollkeeper.engine.journal.source import home_of

    with refusals():
        return data if account is None else home_of(data, account)


def thresholds_of(data: JournalSource, account: str | None) -> Thresholds:
    """Return the account's thresholds; the defaults if no account is given."""
    from tollkeeper.engine.registry.changes import Thresholds

    return Thresholds() if account is None else read_account(data, account).settings.thresholds


def data_folder(data: JournalSource, instead: str) -> Path:
    """Return the folder, for a command that works on its files. If the journal is in a database,
    print what to do instead and exit with 1.
    """
    if not isinstance(data, Path):
        refuse(f"the journal is in a database: {instead}")
    return data


def where(data: JournalSource) -> tuple[str, ...]:
    """Return the options by which another command finds the same journal."""
    from tollkeeper.engine.journal.source import folder_of, url_of, whole_of

    url = url_of(whole_of(data))
    options = ("--data", str(folder_of(whole_of(data)).resolve()))
    return options if url is None else (*options, "--database", url)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn refusals of the data folder into one line for a person, and exit with 1."""
    from tollkeeper.engine.journal.contract import JournalError
    from tollkeeper.engine.lists.maxmind_file import BadDatabase
    from tollkeeper.engine.registry.errors import Refused

    try:
        yield
    except Refused as refused:
        refuse_all(refused.violations)
    except (JournalError, BadDatabase) as error:
        refuse(str(error))
