"""Run `toll` for a server whose own standard output carries its protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

ENTRY = "from tollkeeper.cli import main; main()"


async def toll(*arguments: str, folder: Path) -> tuple[int, str, str]:
    """Run a command; return its exit code, standard output and standard error."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ENTRY, *arguments),
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:  # the caller was cancelled
            process.kill()
    texts = (each.decode("utf-8", "replace").strip() for each in (out, err))
    return process.returncode or 0, *texts  # type: ignore[return-value]  # two of them
