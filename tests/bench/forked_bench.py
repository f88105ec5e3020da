"""A benchmark in a process of its own: some change how Python collects garbage or switches threads."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path


def run_bench(name: str, arguments: tuple[str, ...], told: Path) -> None:
    """Runs it; all that it prints is in the file."""
    with told.open("ab") as printed:
        for stream in (1, 2):
            os.dup2(printed.fileno(), stream)
    sys.argv = [name, *arguments]
    import_module(f"tollkeeper.bench.{name}").main()
    sys.stdout.flush()
