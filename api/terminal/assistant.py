"""The tools offered to an assistant over a folder of rules (Model Context Protocol).

Each runs `toll` on the folder and returns its JSON. Nothing is written; a service's data is only
read.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from tollkeeper.api.terminal.folder import where
from tollkeeper.api.terminal.subcommand import toll
from tollkeeper.engine.offline.rule_files import known_beside
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.render import Source, as_json

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource

INSTRUCTIONS = """Tollkeeper's rules decide payments. Draft a rule, then: `check` it until nothing is
found, `test` its `test` blocks, `backtest` it on history, and only then show it to a person, with
what the backtest says. `fields` tells all that a rule can name. Publishing is a person's."""


def build_tools(folder: Path, data: JournalSource) -> MCPServer:
    """Return a server with the tools; `data` is the data folder of a service on this machine, if
    any.
    """
    folder = folder.resolve()
    server = MCPServer("toll", instructions=INSTRUCTIONS)

    def inside(file: str) -> str:
        """Return the file's path relative to the folder; files outside it aren't read."""
        with suppress(OSError, ValueError):  # no file can have the name
            path = (folder / file).resolve()
            if folder in path.parents and path.is_file():
                return str(path.relative_to(folder))
        raise ToolError(f"there is no file {file} in the folder")

    async def answer(*arguments: str) -> Any:
        try:
            _, out, err = await toll(*arguments, folder=folder)
        except (OSError, ValueError) as error:  # NUL, or longer than a command's argument can be
            raise ToolError(str(error)) from None
        try:
            return json.loads(out)
        except ValueError:
            raise ToolError(err or out) from None

    @server.tool()
    async def check(file: str | None = None, text: str | None = None) -> list[dict[str, Any]]:
        """Check a rule file of the folder, or a drafted text among its files.

        Each finding has its code, place, message, help and fixes as edits. An empty list means no
        findings.
        """
        if (file is None) == (text is None):
            raise ToolError("give either a file or a text")
        if text is not None:
            reading = read_file(text.encode("utf-8", "replace"), known_beside([folder]))
            return list(as_json(Source.of("draft", reading.text), reading.diagnostics))
        found: list[dict[str, Any]] = await answer("check", "--json", "--", inside(file or ""))
        return found

    @server.tool()
    async def fields(pattern: str = "") -> list[dict[str, Any]]:
        """The fields, functions, aggregates and shipped velocities whose names contain a pattern."""
        found: list[dict[str, Any]] = await answer("fields", "--json", "--", pattern)
        return found

    @server.tool()
    async def test(file: str) -> dict[str, Any]:
        """The result of each test of a rule file, why it failed, and what no test covered."""
        run: dict[str, Any] = await answer("test", "--json", "--", inside(file))
        return run

    @server.tool()
    async def explain(payment_id: str, account: str) -> dict[str, Any]:
        """Why a stored payment was decided as it was, value by value."""
        of = ("--account", account, *where(data))
        explanation: dict[str, Any] = await answer("explain", "--json", *of, "--", payment_id)
        return explanation

    @server.tool()
    async def backtest(
        file: str, account: str | None = None, history: str | None = None, since: str | None = None
    ) -> dict[str, Any]:
        """What a rule file would have decided differently over an account's stored payments, or
        over a history file of the folder; `since` is a span such as `30d` or a day.
        """
        if (account is None) == (history is None):
            raise ToolError("give either an account or a history file")
        of = (
            ("--history", inside(history))
            if history is not None
            else ("--account", account or "", *where(data))
        )
        span = () if since is None else ("--since", since)
        report: dict[str, Any] = await answer("backtest", "--json", *of, *span, "--", inside(file))
        return report

    return server
