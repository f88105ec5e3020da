"""Run every benchmark, or the named ones, and put their tables into docs/performance.md.

    python -m tollkeeper.bench [--full] [NAME …]

Each runs in a process of its own, shortened, or at full size with `--full`. Its output replaces the
text between its two marks in the page; the text around them stays. Peers that are not installed are
named and left out: see `peers` in pyproject.toml.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
SHORT: dict[str, tuple[str, ...]] = {
    "rules": (),
    "validation": (),
    "clients": (),
    "editor": ("--strokes", "40"),
    "lists": ("--entries", "100000"),
    "mutants": ("--every", "20"),
    "windows": ("--payments", "100000"),
    "scores": ("201",),
    "suggest": ("601",),
    "journal": ("100000",),
    "postgres": ("--appends", "3200"),
    "retention": ("--entries", "100000"),
    "nodes": ("--rounds", "1"),
    "forwarding": (),
    "following": ("--payments", "8640"),
    "joining": ("20000",),
    "rebuild": ("50000",),
    "backtest": ("1",),
    "columns": ("--payments", "3e4", "--rounds", "2"),
    "spark": ("--payments", "2e4", "--share", "5000"),
    "request": ("--payments", "2000"),
    "http": ("--seconds", "2", "--rounds", "3"),
    "stages": ("--seconds", "5"),
    "least": ("--seconds", "2", "--rounds", "3"),
    "ways": (),
    "fronts": (),
    "asgi": ("--seconds", "2", "--rounds", "2"),
    "telemetry": ("--seconds", "2", "--rounds", "2"),
    "collector": ("--stored", "30000", "--seconds", "2", "--rounds", "2"),
    "invalid": ("--seconds", "1", "--rounds", "2"),
    "search": ("--payments", "30000"),
    "lag": ("--payments", "50000", "--seconds", "1", "--turns", "2"),
    "pages": ("--payments", "10000", "--seconds", "3"),
    "events": ("1",),
    "growth": ("--payments", "1e5"),
    "erasure": ("20000",),
    "soak": ("--minutes", "0.4"),
    "overload": ("--seconds", "5"),
    "neighbours": ("--seconds", "2"),
    "crash": ("--kills", "5"),
    "chaos": ("--seconds", "60"),
    "upgrade": (),
    "operated": ("--minutes", "0.7", "--rate", "100"),
}
"""Every benchmark, with the arguments that shorten it."""

notes = Console(stderr=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="in their whole size")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SHORT))
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in SHORT]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    failed = []
    for name in options.names or SHORT:
        arguments = () if options.full else SHORT[name]
        notes.print(f"{name} …", end=" ")
        begun = time.monotonic()
        output = output_of(name, arguments)
        notes.print("failed" if output is None else f"{time.monotonic() - begun:.0f} s")
        if output is None:
            failed.append(name)
            continue
        command = " ".join(["python -m tollkeeper.bench." + name, *arguments])
        PAGE.write_text(fill_page(PAGE.read_text(), name, f"`{command}`\n\n{output}"))
    PAGE.write_text(fill_page(PAGE.read_text(), "machine", machine()))
    if failed:
        sys.exit(f"these failed, and their tables are as before: {', '.join(failed)}")


def output_of(name: str, arguments: tuple[str, ...]) -> str | None:
    """Return a benchmark's output; None if it fails."""
    command = [sys.executable, "-m", f"tollkeeper.bench.{name}", *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return None if ran.returncode else ran.stdout.strip()


def fill_page(page: str, name: str, output: str) -> str:
    """Return the page with this output between the benchmark's marks. ValueError for a page without
    them.
    """
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    before, _, rest = page.partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no `{start}` and `{end}`")
    return f"{before}{start}\n{output}\n{end}{after}"


def machine() -> str:
    model = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return (
        f"Last run on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} × {model[0]},"
        f" {platform.system()}, Python {platform.python_version()},"
        f" SQLite {sqlite3.sqlite_version}."
    )


if __name__ == "__main__":
    main()
