"""What a service starts by `python -m`, forked from it as it was before it had threads.

So the processes of the index and of jobs begin with all that they import. Started anew, an index takes
as much of the processor as the rest of a test's service.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import signal
import socket
import sys
import traceback
from functools import partial

_MOST = 1 << 17
"""The bytes of the longest command, its environment included."""


def fork_modules() -> None:
    """In this process, `asyncio.create_subprocess_exec` forks modules from now on."""
    commands, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        commands.close()
        _fork_each(asked)
    asked.close()
    asyncio.create_subprocess_exec = partial(_start, commands)  # type: ignore[assignment]


class Forked:
    """What is used of a process that asyncio has started. It has ended once its output has."""

    def __init__(
        self,
        pid: int,
        stdin: asyncio.StreamWriter,
        output: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, output[0]
        # Without it asyncio closes the output.
        self._output = output

    @property
    def returncode(self) -> int | None:
        return 0 if self.stdout.at_eof() else None

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    async def wait(self) -> None:
        await self.stdout.read()


async def _start(
    commands: socket.socket, *command: str, env: dict[str, str] | None = None, **_pipes: int
) -> Forked:
    python, flag, *module = command
    assert (python, flag) == (sys.executable, "-m")
    written, their_input = socket.socketpair()
    read, their_output = socket.socketpair()
    with their_input, their_output:
        said = json.dumps([module, env or dict(os.environ)]).encode()
        socket.send_fds(commands, [said], [their_input.fileno(), their_output.fileno()])
        pid = int(commands.recv(_MOST))
    _, stdin = await asyncio.open_connection(sock=written)
    return Forked(pid, stdin, await asyncio.open_connection(sock=read))


def _fork_each(asked: socket.socket) -> None:
    """Forks a process for each command, until the service has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nobody waits for those that are forked.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        said, streams, *_ = socket.recv_fds(asked, _MOST, 2)
        if not said:
            os._exit(0)
        if (pid := os.fork()) == 0:
            asked.close()
            module, environment = json.loads(said)
            _perform(module, environment, streams)
        for stream in streams:
            os.close(stream)
        asked.sendall(str(pid).encode())


def _perform(module: list[str], environment: dict[str, str], streams: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Kept as a process's own: what takes one's buffer may let go of the rest.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout)
    sys.argv = module
    # As in a process of its own, where nothing has loaded it yet.
    sys.modules.pop(module[0], None)
    code = 1
    try:
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
        sys.stdout.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
