"""What replays an account's history counts late payments as the service on the folder did."""

from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from tollkeeper.api.terminal.options import data_option, late_option
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.lateness import LATENESS_FILE, read_lateness
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.tests.service.process import serving_within


@click.command
@click.option("--history", "histories", multiple=True)
@late_option
@data_option
def replay(histories: tuple[str, ...], late: int, data: JournalSource) -> None:
    """Prints what such a command is given."""
    click.echo(f"{late // HOUR} {len(histories)} {data}")


def test_a_command_counts_as_the_service_was_started_unless_it_is_told_otherwise(
    tmp_path: Path,
) -> None:
    with serving_within(tmp_path, late_hours=2):
        assert read_lateness(tmp_path) == 3 * HOUR
    given = ["--data", str(tmp_path)]
    told = {
        hours: CliRunner().invoke(replay, [*given, *hours]).output.split()[0]
        for hours in ((), ("--late-hours", "5"), ("--history", "march.jsonl"))
    }
    assert list(told.values()) == ["3", "6", f"{LATE // HOUR}"]


def test_a_folder_that_says_nothing_or_nonsense_counts_as_by_default(tmp_path: Path) -> None:
    assert read_lateness(tmp_path) == LATE
    (tmp_path / LATENESS_FILE).write_text("soon")
    assert read_lateness(tmp_path) == LATE
