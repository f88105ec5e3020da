"""Commands that the servers of editors and assistants start, in processes of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tollkeeper.api.terminal.subcommand import toll


def test_a_command_runs_in_its_folder_and_its_errors_come_apart(tmp_path: Path) -> None:
    (tmp_path / "a.rule").write_text("rule a condition c when amount > 1 then deny\n")

    async def check(name: str) -> tuple[int, str, str]:
        return await toll("check", name, "--json", folder=tmp_path)

    code, out, err = asyncio.run(check("a.rule"))
    assert (code, out[:1], err) == (0, "[", "")
    code, out, err = asyncio.run(check("b.rule"))
    assert (code, out) == (2, "")
    assert err.startswith("Usage:")
