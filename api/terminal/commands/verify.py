"""`toll verify`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import data_option, json_option
from tollkeeper.api.terminal.output import NO, OK, plural, print_json, progress_bar, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource


@click.command(panel="Service")
@click.option(
    "--windows",
    is_flag=True,
    help="Also recompute stored windows from the journal; takes as long as a start after a crash.",
)
@json_option
@data_option
def verify(windows: bool, as_json_: bool, data: JournalSource) -> None:
    """Look for damage in a data folder, or in a backup; exit 1 when there is some.

    Nothing is changed, and the service may be running.
    """
    from tollkeeper.engine.backup.recount import recount
    from tollkeeper.engine.backup.verify import verify as verify_folder
    from tollkeeper.engine.journal.source import shards_of

    with refusals(), progress_bar("verifying") as progress:
        report = verify_folder(data, progress)
    recounted = 0
    if windows and not report.faults:
        with refusals(), progress_bar("recounting") as progress:
            for each in shards_of(data):
                found = recount(each, progress)
                recounted += found.series
                report.faults += found.faults
    if as_json_:
        print_json(
            {
                "files": [str(path) for path in report.files],
                "entries": dict(report.entries),
                "sealed": report.sealed,
                "without_checksum": report.without_checksum,
                "recounted": recounted,
                "faults": [
                    {"sequence": fault.sequence, "text": fault.text} for fault in report.faults
                ],
                "more": report.more,
            }
        )
    else:
        for fault in report.faults:
            say(fault.text, style="red")
        if report.more:
            say(f"and {report.more} more", style="red")
        read = plural(report.entries.total(), "entry")
        say(f"read {plural(len(report.files), 'file')} and {read}, {report.sealed} of them sealed")
        if report.without_checksum:
            say(f"{report.without_checksum} were written before there were checksums")
        if windows:
            say(f"recounted {recounted} series of windows")
        faults = len(report.faults) + report.more
        say(
            plural(faults, "fault") if faults else "no fault",
            style="bold red" if faults else "bold green",
        )
    sys.exit(NO if report.faults else OK)
