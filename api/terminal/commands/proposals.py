"""`toll proposals`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.commands.activate import require_passing_version
from tollkeeper.api.terminal.commands.lists import column_option, expiry_option, list_entries
from tollkeeper.api.terminal.folder import perform, read_account, refusals
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    json_option,
    kind_option,
    until_option,
)
from tollkeeper.api.terminal.output import (
    plural,
    progress_bar,
    refuse,
    say,
    show_rows,
    warn_all,
)

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


_TITLES = (
    *("number", "state", "subject", "version", "by", "at", "note", "decided_by", "reason"),
    "warnings",
)


@click.group(panel="What decides")
def proposals() -> None:
    """Changes that another person makes by approving them."""


@proposals.command("list")
@account_option
@json_option
@data_option
def list_proposals(account: str, as_json_: bool, data: JournalSource) -> None:
    """List the proposals, newest first."""
    from tollkeeper.engine.instants import show_instant
    from tollkeeper.engine.registry.audit import subject_of

    found = sorted(read_account(data, account).proposals.values(), key=lambda each: -each.number)
    rows = [
        (
            each.number,
            each.state,
            subject_of(each.change),
            str(getattr(each.change, "number", "")),
            each.by,
            show_instant(each.at),
            each.note,
            each.decided_by or "",
            each.reason,
            "; ".join(warning.message for warning in each.warnings),
        )
        for each in found
    ]
    show_rows(_TITLES, rows, as_json_)


@proposals.command("make")
@click.argument("name")
@click.argument("version", type=int)
@kind_option
@account_option
@until_option
@click.option("--note", required=True, help="The reason, for whoever approves.")
@author_option
@data_option
def propose(
    name: str,
    version: int,
    kind: Any,
    account: str,
    until: int | None,
    note: str,
    data: JournalSource,
) -> None:
    """Propose to make VERSION of NAME active; its tests run first."""
    from tollkeeper.engine.publish.proposals import Propose
    from tollkeeper.engine.registry.versions import Terms, activate

    found = read_account(data, account)
    warnings = require_passing_version(found, kind, name, version)
    with refusals():
        change = activate(found, kind, name, version, Terms(until=until, reason=note))
    warn_all(warnings)
    number = perform(data, Propose(account, change, note, warnings)).count
    say(f"proposal {number}: {name} version {version} waits for another person")


@proposals.command("entries")
@click.argument("name")
@click.argument("values", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Remove them from the list.")
@column_option
@expiry_option
@account_option
@click.option(
    "--note", required=True, help="The reason, for whoever approves; also the note of the entries."
)
@author_option
@data_option
def propose_entries(
    name: str,
    values: Sequence[str],
    remove: bool,
    columns: Sequence[str],
    expires_at: str | None,
    account: str,
    note: str,
    data: JournalSource,
) -> None:
    """Propose to add VALUES to list NAME, or to remove them."""
    from tollkeeper.engine.publish.proposals import Propose
    from tollkeeper.engine.registry.lists import want_entries

    found = read_account(data, account)
    given = values if remove else list_entries(values, columns, expires_at, note)
    with refusals():
        change = want_entries(found, name, "remove" if remove else "put", given)
    number = perform(data, Propose(account, change, note)).count
    say(f"proposal {number}: {plural(change.count, 'entry')} of {name} waits for another person")


@proposals.command("approve")
@click.argument("number", type=int)
@account_option
@author_option
@data_option
def approve(number: int, account: str, data: JournalSource) -> None:
    """Approve proposal NUMBER, which makes its change; only another user than its author may."""
    from tollkeeper.engine.publish.proposals import Approve

    with progress_bar("filling windows") as progress:
        perform(data, Approve(account, number), progress)
    say(f"proposal {number} is approved")


@proposals.command("refuse")
@click.argument("number", type=int)
@account_option
@click.option("--reason", required=True, help="The reason, for the proposer.")
@author_option
@data_option
def refuse_proposal(number: int, account: str, reason: str, data: JournalSource) -> None:
    """Refuse proposal NUMBER; what was published alone is reverted at once."""
    from tollkeeper.engine.publish.proposals import Refuse

    perform(data, Refuse(account, number, reason))
    say(f"proposal {number} is refused")


@proposals.command("alone")
@click.argument("number", type=int)
@account_option
@until_option
@click.option("--reason", required=True, help="Why nobody else could approve.")
@author_option
@data_option
def publish_alone(
    number: int, account: str, until: int | None, reason: str, data: JournalSource
) -> None:
    """Break the glass: publish proposal NUMBER before anybody approves it, for 24 hours at most."""
    from tollkeeper.engine.publish.proposals import PublishAlone

    if until is None:
        refuse("say until when: --until 6h")
    with progress_bar("filling windows") as progress:
        perform(data, PublishAlone(account, number, until, reason), progress)
    say(f"proposal {number} is in force, and waits for a second signature")
