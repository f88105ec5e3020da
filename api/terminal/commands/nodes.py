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
    """List the nodes that share a database's journals: which owns which, how far behind each is."""
    from contextlib import closing

    from tollkeeper.engine.instants import show_instant
    from tollkeeper.engine.journal.source import connect_for_reading, shards_of, url_of

    if url_of(data) is None:
        refuse("a data folder has one service: several share a journal in a database (--database)")
    from tollkeeper.engine.journal.postgres.nodes import SILENT_S, nodes_of, out_of_reach

    found = []
    with refusals():
        for number, shard in enumerate(shards_of(data), start=1):
            with closing(connect_for_reading(shard)) as connection:
                found += [(number, each) for each in nodes_of(connection)]
    rows = [
        (
            number,
            each.process,
            each.address,
            each.release,
            _state(each.is_whole, each.silent_s > SILENT_S),
            each.is_owner,
            "" if each.epoch is None else each.epoch,
            "" if each.owner_since is None else show_instant(each.owner_since),
            each.behind,
            round(each.silent_s, 1),
        )
        for number, each in found
    ]
    titles = (
        *("shard", "process", "address", "release", "state", "owner", "epoch", "since"),
        *("behind", "silent_s"),
    )
    show_rows(titles, rows, as_json_)
    for each in out_of_reach([each for number, each in found if number == 1]):
        say(f"{each.process} is not reached by other machines at {each.address}: set --node-host")


def _state(is_whole: bool, is_silent: bool) -> str:
    if is_silent:
        return "gone"
    return "whole" if is_whole else "filling"
