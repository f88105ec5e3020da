"""A process killed at any moment loses nothing that it acknowledged, and leaves nothing by halves."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.sqlite import open_journal

pytestmark = pytest.mark.anyio

KILLS = 6
LOAD = """
import asyncio, os, sys
from pathlib import Path
from tollkeeper.engine.journal.entries import (Entry, Idempotency, Kind, ListEntry, Addition)
from tollkeeper.engine.journal.sqlite import open_journal

async def main(folder):
    async with open_journal(folder, "serve") as journal:
        sequence = journal.last_sequence()

        async def client():
            nonlocal sequence
            while True:
                sequence += 1
                mine = sequence
                entry = Entry(mine, 1, Kind.CHANGE, f"p{mine}", mine, mine, os.urandom(1500))
                addition = Addition("seen", (ListEntry(str(mine)),))
                await journal.append(entry, Idempotency(f"k{mine}", b"", b""), (addition,))
                os.write(1, b"%d\\n" % mine)

        await asyncio.gather(*(client() for _ in range(32)))

asyncio.run(main(Path(sys.argv[1])))
"""


def sequences(folder, query):
    with closing(schema.connect_for_reading(folder)) as connection:
        return {int(value) for (value,) in connection.execute(query)}


async def test_a_process_killed_under_load_loses_nothing_acknowledged(folder):
    moments = random.Random(7)
    acknowledged = set()
    for _ in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", LOAD, folder], stdout=subprocess.PIPE
        ) as process:
            for _ in range(moments.randint(2, 300)):
                acknowledged.add(int(process.stdout.readline()))
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split(b"\n")
            acknowledged.update(map(int, lines[:-1]))
        async with open_journal(folder, "serve") as journal:
            assert journal.last_sequence() >= max(acknowledged)
        written = sequences(folder, "SELECT place FROM journal")
        assert len(acknowledged - written) == 0
        assert sequences(folder, "SELECT place FROM idempotency") == written
        assert sequences(folder, "SELECT value FROM list_entries WHERE to_place IS NULL") == written
    assert len(acknowledged) > KILLS
