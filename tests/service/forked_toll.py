"""`toll` as a shell finds it, each command forked from a process that has loaded the product; so are
those that a command starts in turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from tollkeeper.api.terminal.subcommand import ENTRY
from tollkeeper.cli import main
from tollkeeper.tests.forked import fork

SENDER = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as command:
    command.connect({address!r})
    socket.send_fds(command, [b"-"], [0, 1, 2])
    command.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    command.shutdown(socket.SHUT_WR)
    code = command.recv(1)
sys.exit(code[0] if code else "the command ended without a code")
"""


@contextmanager
def forked_toll() -> Iterator[Path]:
    """A `toll` whose commands are forked, alone in its folder."""
    with TemporaryDirectory() as made, socket.socket(socket.AF_UNIX) as listener:
        address, sender = f"{made}/commands", Path(made, "toll")
        sender.write_text(SENDER.format(python=sys.executable, address=address))
        sender.chmod(0o755)
        listener.bind(address)
        listener.listen()
        thread = Thread(target=_fork_each, args=(listener, str(sender)))
        thread.start()
        try:
            yield sender
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def searched(toll: Path) -> str:
    """The folders that a shell looks for commands in, this `toll`'s before all others."""
    return os.pathsep.join([str(toll.parent), str(Path(sys.executable).parent), os.environ["PATH"]])


def _fork_each(listener: socket.socket, sender: str) -> None:
    # Whatever ends this closes the listener, so that no later command waits for ever.
    with listener, suppress(OSError):
        while True:
            command, _ = listener.accept()
            with command:
                fork(_perform, command, sender)


def _perform(command: socket.socket, sender: str) -> None:
    """Performs a sender's command with its folder, environment, streams; answers the exit code."""
    _, streams, *_ = socket.recv_fds(command, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    with command.makefile("rb") as said:
        arguments, folder, environment = json.load(said)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - closed with the process
    _fork_commands(sender)
    Thread(target=_end_with, args=(command,), daemon=True).start()
    code = _exit_code(arguments)
    for printed in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            printed.flush()
    command.sendall(bytes([code]))


def _end_with(sender: socket.socket) -> None:
    """Ends this process when its sender is killed, as if it had been killed itself."""
    gone = select.poll()
    gone.register(sender, 0)  # a hang-up alone
    gone.poll()
    os._exit(1)


def _fork_commands(sender: str) -> None:
    """From now on, commands that this process starts are sent, too."""
    start = asyncio.create_subprocess_exec

    async def send(*command: str, **streams: Any) -> asyncio.subprocess.Process:
        if command[:3] == (sys.executable, "-c", ENTRY):
            command = (sender, *command[3:])
        return await start(*command, **streams)

    asyncio.create_subprocess_exec = send  # type: ignore[assignment]


def _exit_code(arguments: list[str]) -> int:
    sys.argv = ["toll", *arguments]
    try:
        main(arguments, prog_name="toll")
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
            return 1
        return end.code or 0
    return 0
