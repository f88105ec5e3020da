"""`toll lists`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account, read_data, refusals
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    json_option,
    read_pairs,
)
from tollkeeper.api.terminal.output import (
    counter,
    json_line,
    plural,
    print_json,
    progress_bar,
    refuse,
    say,
    show_rows,
)

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.read_folder import Picture


column_option = click.option(
    "--column", "columns", multiple=True, help="A column of a table's row: `NAME=VALUE`."
)
expiry_option = click.option(
    "--expires-at", help="A time of RFC 3339, such as 2030-01-31T12:00:00Z."
)


@click.group(panel="What decides")
def lists() -> None:
    """Lists and tables that rules look things up in."""


@lists.command("make")
@click.argument("name")
@click.option(
    "--type", "type_", type=click.Choice(("string", "number", "ip")), help="Type of a list."
)
@click.option(
    "--by", type=click.Choice(("value", "prefix", "network")), help="How a table is looked up."
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="A column of a table: `NAME=TYPE`, or `NAME=one|another`.",
)
@account_option
@author_option
@data_option
def make_list(
    name: str,
    type_: str | None,
    by: str | None,
    columns: Sequence[str],
    account: str,
    data: JournalSource,
) -> None:
    """Make a list or table; an existing one of the same type is left unchanged."""
    from tollkeeper.engine.publish.change_lists import MakeList

    types = {key: text.split("|") if "|" in text else text for key, text in read_pairs(columns)}
    spec = {"type": type_, "by": by, "columns": types or None}
    is_new = perform(data, MakeList(account, name, spec)).count
    say(f"{name} {'is made' if is_new else 'is there already'}")


@lists.command("list")
@account_option
@json_option
@data_option
def list_lists(account: str, as_json_: bool, data: JournalSource) -> None:
    """List the account's lists and tables."""
    import msgspec

    from tollkeeper.api.http.lists import list_view

    known = read_account(data, account).lists
    views = [msgspec.to_builtins(list_view(name, known[name].spec)) for name in sorted(known)]
    if as_json_:
        print_json(views)
        return
    rows = [
        (view["name"], view.get("type") or f"table by {view['by']}", json_line(view.get("columns")))
        for view in views
    ]
    show_rows(("name", "type", "columns"), rows, as_json_=False)


@lists.command("show")
@click.argument("name")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, 500), help="How many at most."
)
@click.option("--after", help="Begin after this value.")
@click.option(
    "--value", help="Only entries that match this value, including networks and prefixes."
)
@account_option
@json_option
@data_option
def show_list(
    name: str,
    limit: int,
    after: str | None,
    value: str | None,
    account: str,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Show the entries of a list, ordered by value."""
    from tollkeeper.engine.lists.entries import show_entry
    from tollkeeper.engine.publish.change_lists import list_page as entries_page
    from tollkeeper.engine.publish.change_lists import met_page
    from tollkeeper.engine.registry.accounts import find_account
    from tollkeeper.engine.registry.lists import find_list

    async def ask(picture: Picture) -> tuple[list[dict[str, Any]], str | None]:
        known = find_account(picture.state, account)
        spec = find_list(known, name).spec
        of = picture.journal, known.number, name
        if value is None:
            list_page = await entries_page(*of, after, limit)
        else:
            try:
                list_page = await met_page(*of, spec, value, after, limit)
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint="--value") from None
        return [show_entry(spec, entry) for entry in list_page.entries], list_page.cursor

    entries, cursor = read_data(data, ask)
    if as_json_:
        print_json({"entries": entries, "cursor": cursor})
        return
    titles = ("value", "columns", "expires_at", "note", "by")
    rows = [
        tuple(
            json_line(entry.get(key)) if key == "columns" else entry.get(key, "") for key in titles
        )
        for entry in entries
    ]
    show_rows(titles, rows, as_json_=False)
    if cursor is not None:
        say(f"there are more: --after {cursor}")


@lists.command("add")
@click.argument("name")
@click.argument("values", nargs=-1, required=True)
@column_option
@expiry_option
@click.option("--note", help="The reason for the entry.")
@account_option
@author_option
@data_option
def add_entries(
    name: str,
    values: Sequence[str],
    columns: Sequence[str],
    expires_at: str | None,
    note: str | None,
    account: str,
    data: JournalSource,
) -> None:
    """Add entries to a list, or renew existing ones."""
    from tollkeeper.engine.publish.change_lists import PutEntries

    entries = list_entries(values, columns, expires_at, note)
    perform(data, PutEntries(account, name, entries))
    say(f"{plural(len(entries), 'entry')} in {name}")


def list_entries(
    values: Sequence[str], columns: Sequence[str], expires_at: str | None, note: str | None
) -> list[dict[str, Any]]:
    """Return the entries in a command's arguments, in the form of `PUT /lists/{name}/entries`."""
    shared: dict[str, Any] = {"expires_at": expires_at, "note": note}
    if columns:
        shared["columns"] = dict(read_pairs(columns))
    return [{"value": value, **shared} for value in values]


@lists.command("remove")
@click.argument("name")
@click.argument("values", nargs=-1, required=True)
@account_option
@author_option
@data_option
def remove_entries(name: str, values: Sequence[str], account: str, data: JournalSource) -> None:
    """Remove entries from a list."""
    from tollkeeper.engine.publish.change_lists import RemoveEntries

    count = perform(data, RemoveEntries(account, name, list(values))).count
    say(f"{plural(count or 0, 'entry')} removed from {name}")


@lists.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="For a MaxMind DB as FILE, where the column is in it: `country=country.iso_code`.",
)
@account_option
@data_option
def import_list(
    name: str, file: Path, columns: Sequence[str], account: str, data: JournalSource
) -> None:
    """Replace all entries of a list by those of FILE, a CSV with a header, or change nothing."""
    from tollkeeper.engine.lists.imports import ImportResult
    from tollkeeper.engine.publish.import_lists import import_file

    with refusals(), progress_bar(f"reading {file.name}") as progress:
        found = import_file(data, account, name, file, dict(read_pairs(columns)), "toll", progress)
    if not isinstance(found, ImportResult):
        say(f"{plural(found.count or 0, 'entry')} in {name} now")
        return
    for bad in found.bad:
        say(f"{file.name}: {bad.place}: {bad.message}", style="red")
    if found.bad_count > len(found.bad):
        say(f"and {found.bad_count - len(found.bad)} more", style="red")
    refuse(f"{plural(found.bad_count, 'bad entry')}: {name} is as it was")


@lists.command("export")
@click.argument("name")
@click.argument("file", type=click.File("w", encoding="utf-8", lazy=False), default="-")
@account_option
@data_option
def export_list(name: str, file: Any, account: str, data: JournalSource) -> None:
    """Write the entries of a list as CSV to FILE, or to standard output."""
    from tollkeeper.engine.publish.import_lists import export_file

    with refusals(), counter("entries") as count:
        exported = export_file(data, account, name, file, count)
    say(f"{plural(exported, 'entry')} of {name}")
