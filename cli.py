"""The entry of `toll`: finds each command in the module of its name, when it is wanted."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys


def end_interrupted() -> NoReturn:
    """End as the signal of Ctrl-C ends a process, without a word."""
    # A shell ends its loop only if the signal itself ends the command; 1 would be an answer.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)
    raise KeyboardInterrupt


try:
    from importlib import import_module
    from pkgutil import iter_modules
    from typing import Any, NoReturn

    import rich_click as click

    from tollkeeper.api.terminal import commands
    from tollkeeper.api.terminal.output import refuse
except KeyboardInterrupt:
    end_interrupted()

_OUTSIDE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS),
    *(errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENAMETOOLONG),
}
"""What a disk, a folder or its owner is to blame for, and never the program."""
COMMAND_COLLECTS_AT = (50_000, 20, 100)
"""Files and programs hold no reference cycles: the collector took a fifth of `toll test`."""


class Commands(click.RichGroup):
    """One command, or group of commands, for each module of `api/terminal/commands/`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's way
        return sorted(module.name for module in iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{commands.__name__}.{cmd_name}")
        return next(
            found
            for found in vars(module).values()
            if isinstance(found, click.Command) and found.name == cmd_name
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known:
            from tollkeeper.grammar.words import did_you_mean

            likely = did_you_mean(name, known)
            ctx.fail(f"there is no command `{name}`" + (f"; {likely}" if likely else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        gc.set_threshold(*COMMAND_COLLECTS_AT)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            end_interrupted()
        except OSError as error:
            if error.errno not in _OUTSIDE:
                raise
            reason = (error.strerror or str(error)).lower()
            if error.filename is None:
                # What could not be written would be tried again at the end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                refuse(reason)
            refuse(f"`{error.filename}`: {reason}")
        return result


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.command_panel("Service")
@click.command_panel("Rule files")
@click.command_panel("What decides")
@click.command_panel("What happened")
@click.command_panel("Accounts")
@click.version_option(package_name="tollkeeper", prog_name="toll")
def main() -> None:
    """Tollkeeper: a payment risk service with a rule language.

    Exit codes: 0 done, or the answer is yes; 1 the answer is no, or it was refused; 2 wrong usage;
    3 no answer, such as a proof that was not found.
    """
