"""How a command meets a data folder: it reads it, or has a verb performed on it."""

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
    """The verb's effect on the data folder; says why and exits 1 when it is refused."""
    from tollkeeper.engine.publish.queue import perform_in

    with refusals():
        return perform_in(data, verb, author(), progress)


def author() -> str:
    """Who makes the command's change, as the audit shows it: `--author`, else the user."""
    context = click.get_current_context()
    assert context is not None
    named = (context.meta.get(AUTHOR) or "").strip()
    try:
        return named or getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return f"user {os.getuid()}"


def read_data(data: JournalSource, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """What a command reads of the data folder; says why and exits 1 when it can't."""
    from tollkeeper.engine.read_folder import read_folder

    with refusals():
        return read_folder(data, ask)


def read_account(data: JournalSource, name: str) -> Account:
    from tollkeeper.engine.registry.accounts import find_account

    async def ask(picture: Picture) -> Account:
        return find_account(picture.state, name)

    return read_data(data, ask)


def journal_of(data: JournalSource, account: str | None) -> JournalSource:
    """The journal with the account; the first where none is named."""
    from tollkeeper.engine.journal.source import home_of

    with refusals():
        return data if account is None else home_of(data, account)


def thresholds_of(data: JournalSource, account: str | None) -> Thresholds:
    """The account's, or the usual ones where none is named."""
    from tollkeeper.engine.registry.changes import Thresholds

    return Thresholds() if account is None else read_account(data, account).settings.thresholds


def data_folder(data: JournalSource, instead: str) -> Path:
    """The folder, for a command that works on its files; says what to do instead and exits 1 when
    the journal is in a database."""
    if not isinstance(data, Path):
        refuse(f"the journal is in a database: {instead}")
    return data


def where(data: JournalSource) -> tuple[str, ...]:
    """The options by which another command finds the same journal."""
    from tollkeeper.engine.journal.source import folder_of, url_of, whole_of

    url = url_of(whole_of(data))
    options = ("--data", str(folder_of(whole_of(data)).resolve()))
    return options if url is None else (*options, "--database", url)


@contextmanager
def refusals() -> Iterator[None]:
    """What the data folder refuses, as one line for a person."""
    from tollkeeper.engine.journal.contract import JournalError
    from tollkeeper.engine.lists.maxmind_file import BadDatabase
    from tollkeeper.engine.registry.errors import Refused

    try:
        yield
    except Refused as refused:
        refuse_all(refused.violations)
    except (JournalError, BadDatabase) as error:
        refuse(str(error))
