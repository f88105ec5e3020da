"""`toll events`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    json_option,
)
from tollkeeper.api.terminal.output import (
    NO,
    OK,
    plural,
    progress_bar,
    refuse,
    say,
    show_rows,
    warn_all,
)
from tollkeeper.api.terminal.rule_file import read_rule_file

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.group(panel="What decides")
def events() -> None:
    """Event types, and events for a running service."""


def _read_from(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    from tollkeeper.engine.lists.values import read_instant

    try:
        return None if text is None else read_instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--from") from None


@events.command("publish")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--breaking", is_flag=True, help="The contract changes; needs --from.")
@click.option(
    "--from",
    "applies_from",
    metavar="INSTANT",
    callback=_read_from,
    help="From when it applies.",
)
@click.option("--untested", is_flag=True, help="Publish it although its own tests fail.")
@account_option
@author_option
@data_option
def publish_event_type(
    file: Path,
    breaking: bool,
    applies_from: int | None,
    untested: bool,
    account: str,
    data: JournalSource,
) -> None:
    """Run FILE's tests, store its event type as a new version and make it active."""
    from tollkeeper.api.terminal.commands.publish import require_passing
    from tollkeeper.engine.programs.event_versions import EventVersionPlan
    from tollkeeper.engine.publish.activate import Store
    from tollkeeper.engine.registry.changes import Thresholds
    from tollkeeper.engine.registry.versions import Terms
    from tollkeeper.grammar.program import EventType

    reading = read_rule_file(file)
    if not isinstance(reading.program, EventType):
        refuse(f"{file} is not an event type")
    if not untested:
        require_passing(file, reading, Thresholds())
    name = reading.program.name
    planned = EventVersionPlan(breaking, applies_from)
    verb = Store(
        account, "event", name, reading.text, True, None, planned, Terms(untested=untested)
    )
    with progress_bar("filling windows") as progress:
        answer = perform(data, verb, progress)
    warn_all(answer.warnings)
    say(f"{name} version {answer.version} is active")


@events.command("list")
@account_option
@json_option
@data_option
def list_event_types(account: str, as_json_: bool, data: JournalSource) -> None:
    """List the event types, with the version that is active."""
    files = read_account(data, account).files
    rows = [
        (name, len(lineage.versions), lineage.active)
        for (kind, name), lineage in sorted(files.items())
        if kind == "event"
    ]
    show_rows(("name", "newest", "active"), rows, as_json_)


@events.command("deactivate")
@click.argument("name")
@account_option
@author_option
@data_option
def deactivate_event_type(name: str, account: str, data: JournalSource) -> None:
    """Deactivate an event type: its events are refused from now on."""
    from tollkeeper.engine.publish.activate import Deactivate

    perform(data, Deactivate(account, "event", name))
    say(f"{name} is not published any more")


@events.command("send")
@click.argument("file", type=click.File("rb", lazy=False), default="-")
@click.option(
    "--url",
    default="http://127.0.0.1:8000/v1",
    envvar="TOLL_URL",
    show_default=True,
    show_envvar=True,
    help="Base address of the service.",
)
@click.option("--key", required=True, envvar="TOLL_KEY", show_envvar=True, help="API key.")
def send(file: BinaryIO, url: str, key: str) -> None:
    """Send events, one JSON object a line, to a running service; exit 1 when one was refused."""
    import httpx

    from tollkeeper.api.terminal.event_batches import send_events

    lines = file.readlines()
    accepted = refused = 0
    with progress_bar("sending") as progress:
        try:
            for sent in send_events(url, key, lines):
                accepted += not sent.errors
                refused += bool(sent.errors)
                for error in sent.errors:
                    say(f"line {sent.line}: {error['field']}: {error['message']}", "red")
                progress(sent.line / len(lines))
        except httpx.HTTPError as error:
            refuse(f"no answer from `{url}`: {error}")
    say(
        f"{plural(accepted, 'event')} kept, {refused} refused",
        "bold red" if refused else "bold green",
    )
    sys.exit(NO if refused else OK)
