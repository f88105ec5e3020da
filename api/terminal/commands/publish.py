"""`toll publish`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account, refusals
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    reason_option,
    until_option,
)
from tollkeeper.api.terminal.output import err, progress_bar, refuse, say, show_whole, warn_all
from tollkeeper.api.terminal.rule_file import read_rule_file

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.programs.source import FileReading
    from tollkeeper.engine.registry.changes import Thresholds


@click.command(panel="What decides")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@account_option
@click.option("--draft", is_flag=True, help="Store the version, but don't make it active.")
@click.option(
    "--expected",
    type=int,
    help="The newest version that you know; refused if there is a newer one.",
)
@until_option
@reason_option
@click.option(
    "--untested",
    is_flag=True,
    help="Publish it although its own tests fail or a `must` does not hold.",
)
@click.option("--preview", is_flag=True, help="Show what it would change, and ask.")
@click.option(
    "--since",
    default="7d",
    show_default=True,
    metavar="DAY|SPAN",
    help="Where a preview's backtest begins: a day, or a span back such as `12h`.",
)
@author_option
@data_option
def publish(
    file: Path,
    account: str,
    draft: bool,
    expected: int | None,
    until: int | None,
    reason: str,
    untested: bool,
    preview: bool,
    since: str,
    data: JournalSource,
) -> None:
    """Run FILE's tests, store it as a new version and make it active, with the definitions that it
    uses.
    """
    from tollkeeper.engine.offline.rule_files import rule_files, used_definitions
    from tollkeeper.engine.publish.activate import Store
    from tollkeeper.engine.registry.versions import Terms, program_kind

    reading = read_rule_file(file)
    program = reading.program
    assert program is not None
    if not (draft or untested):
        require_passing(file, reading, read_account(data, account).settings.thresholds)
    if preview:
        show_preview(file, account, since, data)
        if not click.confirm("publish it?", err=True):
            refuse("nothing is published")
    for name, text in used_definitions(rule_files([file.parent]), reading.uses).items():
        perform(data, Store(account, "definitions", name, text, True))
        say(f"definitions {name} are active")
    with progress_bar("filling windows") as progress:
        answer = perform(
            data,
            Store(
                *(account, program_kind(program), program.name, reading.text),
                *(not draft, expected),
                terms=Terms(untested=untested, until=until, reason=reason),
            ),
            progress,
        )
    warn_all(answer.warnings)
    state = "stored" if draft else "active"
    say(f"{program.name} version {answer.version} is {state}")


def show_preview(file: Path, account: str, since: str, data: JournalSource) -> None:
    """Show how FILE differs in meaning from the active version, and which past decisions it would
    change.
    """
    from tollkeeper.api.terminal.inputs import InputError, read_since
    from tollkeeper.api.terminal.rendering import draw_preview
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.offline.preview import preview_file
    from tollkeeper.engine.offline.testing.files import library_of, load_file

    moment = now()
    try:
        begin = read_since(since, moment)
    except InputError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
    found = load_file(file, library_of([file.parent]))
    with refusals(), progress_bar("replaying") as progress:
        preview = preview_file(data, account, found, (begin, moment), progress)
    for each in draw_preview(preview):
        show_whole(each)


def require_passing(file: Path, reading: FileReading, thresholds: Thresholds) -> None:
    """Print the file's failing tests, its unmet promises and those that were not tried; exit with 1
    for the first two.
    """
    from tollkeeper.engine.offline.testing.publishable import try_file
    from tollkeeper.grammar.render import Source, as_rich

    found = try_file(file, thresholds)
    if found:
        err.print(as_rich(Source.of(str(file), reading.text), found), soft_wrap=True)
    if any(each.severity == "error" for each in found):
        refuse("nothing is published")
