"""Options of several commands, and how their values are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource

AUTHOR = "tollkeeper.author"
"""The key of the author in a command's context."""
_LAST_SEQUENCE = 2**63 - 1


class _Utf8(click.ParamType[str]):
    """Text; an argument's other bytes would reach the journal as halves of surrogate pairs."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail("this is not UTF-8", param, ctx)
        return value


UTF8 = _Utf8()


class _NewFile(click.Path):
    """A file to write: without its folder it is refused before the work, and not after it."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        path = Path(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if not path.parent.is_dir():
            self.fail(f"there is no folder `{path.parent}`", param, ctx)
        return path


NEW_FILE = _NewFile(dir_okay=False, writable=True)

folder_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    envvar="TOLL_DATA",
    show_default=True,
    show_envvar=True,
    help="Folder of the service's data.",
)
_database_option = click.option(
    "--database",
    envvar="TOLL_DATABASE",
    show_envvar=True,
    metavar="URL",
    help="PostgreSQL database with the journal, in place of the folder: `postgresql://…`.",
)


_late_option = click.option(
    "--late-hours",
    type=click.IntRange(1, 24),
    envvar="TOLL_LATE_HOURS",
    show_default="what the data folder's service was last started with, else 24",
    show_envvar=True,
    help="As the service is started with.",
)


def paths_argument(*kinds: Callable[[Path], bool]) -> Callable[..., Any]:
    """Return the decorator that adds `paths`: files, and folders with a file of one of the kinds.

    A folder without any would pass each check: a wrong path must not look like success.
    """

    def is_wanted(path: Path) -> bool:
        return any(kind(path) for kind in kinds) and path.is_file()

    def refuse_empty(_context: object, _parameter: object, paths: Sequence[Path]) -> Sequence[Path]:
        for path in paths:
            if path.is_dir() and not any(map(is_wanted, path.rglob("*"))):
                raise click.UsageError(f"`{path}` contains no rule file")
        return paths

    return click.argument(
        "paths",
        nargs=-1,
        required=True,
        type=click.Path(exists=True, path_type=Path),
        callback=refuse_empty,
    )


def late_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `late` (µs): how far behind the latest arrival the service still counts a payment. For
    commands that read an account's history or `--history`.
    """

    @wraps(command)
    def with_span(*given: Any, late_hours: int | None, **others: Any) -> Any:
        from tollkeeper.engine.instants import HOUR
        from tollkeeper.engine.lateness import read_lateness
        from tollkeeper.engine.velocity.contract import LATE

        if late_hours is not None:
            # One more hour, for clocks that differ.
            late = (late_hours + 1) * HOUR
        else:
            late = LATE if others["histories"] else read_lateness(others["data"])
        return command(*given, late=late, **others)

    return _late_option(with_span)


def data_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `data`, where the journal is: a folder, or a database and a folder."""

    @wraps(command)
    def with_source(*given: Any, data: Path, database: str | None, **others: Any) -> Any:
        source: JournalSource = data
        if database is not None:
            from tollkeeper.api.terminal.folder import journal_of
            from tollkeeper.engine.journal.source import Database

            source = journal_of(Database(database, data), others.get("account"))
        return command(*given, data=source, **others)

    return folder_option(_database_option(with_source))


author_option = click.option(
    "--author",
    type=UTF8,
    envvar="TOLL_AUTHOR",
    show_envvar=True,
    expose_value=False,
    callback=lambda context, _option, name: context.meta.update({AUTHOR: name}),
    help="The author of the change, for the audit log; by default the system's user.",
)
account_option = click.option(
    "--account", required=True, envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account."
)
limit_option = click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 500), help="How many at most."
)


def _read_cursor(
    _context: click.Context, _option: click.Parameter, cursor: int | None
) -> int | None:
    if cursor is not None and not 0 < cursor <= _LAST_SEQUENCE:
        raise click.BadParameter("no page ends there", param_hint="--cursor")
    return cursor


cursor_option = click.option(
    "--cursor", type=int, callback=_read_cursor, help="Continue after an earlier page."
)
json_option = click.option("--json", "as_json_", is_flag=True, help="Print JSON, for a program.")


def kind_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kind",
        type=click.Choice(("rule", "scorecard", "event", "definitions")),
        default="rule",
        show_default=True,
        help="What NAME names.",
    )(command)


def decider_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kind",
        type=click.Choice(("rule", "scorecard")),
        default="rule",
        show_default=True,
        help="What NAME names.",
    )(command)


def _read_since(_context: click.Context, _option: click.Parameter, text: str | None) -> int:
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.search.filters import read_moment

    try:
        return 0 if text is None else read_moment(text, now())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None


since_option = click.option(
    "--since",
    metavar="INSTANT|SPAN",
    callback=_read_since,
    help="Only what arrived at this instant or later, or a span back such as `30d`.",
)


def _read_until(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.publish.activate import read_until

    try:
        return None if text is None else read_until(text, now())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--until") from None


until_option = click.option(
    "--until",
    metavar="INSTANT|SPAN",
    callback=_read_until,
    help="When the version that is active now becomes active again: `2027-01-01T06:00Z`, or `6h`.",
)
reason_option = click.option("--reason", default="", help="The reason, for the audit log.")


def read_pairs(options: Sequence[str]) -> list[tuple[str, str]]:
    """Read options of the form `NAME=VALUE`."""
    split = [option.partition("=") for option in options]
    for name, equals, _ in split:
        if not (name and equals):
            raise click.BadParameter(
                f"`{name}` is not of the form NAME=VALUE", param_hint="--column"
            )
    return [(name, value) for name, _, value in split]
