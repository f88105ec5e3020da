"""`toll nodes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import data_option, json_option
from tollkeeper.api.terminal.output import refuse, say, show_rows

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Service")
@json_option
@data_option
def nodes(as_json_: bool, data: JournalSource) -> None:
    """List the nodes that share a journal in a database: which owns it, how far behind each is."""
    from contextlib import closing

    from tollkeeper.engine.instants import show_instant
    from tollkeeper.engine.journal.source import connect_for_reading, url_of

    if url_of(data) is None:
        refuse("a data folder has one service: several share a journal in a database (--database)")
    from tollkeeper.engine.journal.postgres.nodes import SILENT_S, nodes_of, out_of_reach

    with refusals(), closing(connect_for_reading(data)) as connection:
        found = nodes_of(connection)
    rows = [
        (
            each.process,
            each.address,
            each.release,
            _state(each.is_whole, each.silent_s > SILENT_S),
            each.is_owner,
            "" if each.owner_since is None else show_instant(each.owner_since),
            each.behind,
            round(each.silent_s, 1),
        )
        for each in found
    ]
    titles = ("process", "address", "release", "state", "owner", "since", "behind", "silent_s")
    show_rows(titles, rows, as_json_)
    for each in out_of_reach(found):
        say(f"{each.process} is not reached by other machines at {each.address}: set --node-host")


def _state(is_whole: bool, is_silent: bool) -> str:
    if is_silent:
        return "gone"
    return "whole" if is_whole else "filling"
