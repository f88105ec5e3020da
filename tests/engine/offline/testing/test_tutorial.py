"""The tutorial's commands do what the tutorial shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tollkeeper.tests.service.forked_toll import forked_toll, searched

TUTORIAL = Path(__file__).parents[4] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# Scores are the shipped scorecard's, which has tests of its own.
_SCORE = re.compile(r"score 0\.\d\d")


def commands(block: str) -> list[tuple[str, str]]:
    """Each command, its here-document included, with the output shown behind it."""
    found: list[tuple[str, str]] = []
    within: str | None = None
    for line in block.splitlines(keepends=True):
        if within is not None:
            found[-1] = (found[-1][0] + line, "")
            within = None if line.strip() == within else within
        elif line.startswith("$ "):
            found.append((line[2:], ""))
            here = re.search(r"<<'(\w+)'", line)
            within = here and here[1]
        else:
            command, shown = found[-1]
            found[-1] = (command, shown + line)
    return found


def run(command: str, folder: Path, toll: Path) -> tuple[str, Path]:
    """What a shell prints for the command, and the folder it is in then."""
    done = subprocess.run(
        ["bash", "-c", f'exec 2>&1\n{command}\npwd > "$PWD_FILE"'],
        cwd=folder,
        env={
            **os.environ,
            "PATH": searched(toll),
            "PWD_FILE": str(folder / ".pwd"),
            "NO_COLOR": "1",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    place = folder / ".pwd"
    now = Path(place.read_text().strip())
    place.unlink()
    return done.stdout, now


def test_the_tutorials_commands_print_what_it_shows(tmp_path: Path) -> None:
    folder = tmp_path
    with forked_toll() as toll:
        for block in BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
            for command, shown in commands(block):
                printed, folder = run(command, folder, toll)
                assert (command, _SCORE.sub("score", printed)) == (
                    command,
                    _SCORE.sub("score", shown),
                )
