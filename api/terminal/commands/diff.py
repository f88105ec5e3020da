"""`toll diff`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import read_account, refusals
from tollkeeper.api.terminal.options import data_option, json_option, kind_option
from tollkeeper.api.terminal.output import out, print_json, refuse, say

if TYPE_CHECKING:
    from tollkeeper.engine.publish.diff import Difference


@click.command(panel="What decides")
@click.argument("of", nargs=-1, required=True, metavar="NAME OLD NEW | FILE FILE")
@kind_option
@click.option("--account", envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account.")
@json_option
@data_option
def diff(of: tuple[str, ...], kind: Any, account: str | None, as_json_: bool, data: Path) -> None:
    """Tell what changed in meaning from version OLD of NAME to version NEW, or between two files."""
    import msgspec

    from tollkeeper.api.terminal.rendering import draw_differences

    if len(of) == 2:
        found, same = _of_files(Path(of[0]), Path(of[1])), f"{of[0]} and {of[1]}"
    elif len(of) == 3 and of[1].isdecimal() and of[2].isdecimal():
        if account is None:
            raise click.UsageError("versions are those of an account: give --account")
        found = _of_versions(data, account, kind, of[0], int(of[1]), int(of[2]))
        same = f"versions {of[1]} and {of[2]} of {of[0]}"
    else:
        raise click.UsageError("give a name and two versions, or two files")
    if as_json_:
        print_json(msgspec.to_builtins(found))
        return
    for line in draw_differences(found):
        out.print(line, soft_wrap=True)
    if not found:
        say(f"{same} say the same")


def _of_versions(
    data: Path, account: str, kind: Any, name: str, old: int, new: int
) -> Sequence[Difference]:
    from tollkeeper.engine.publish.diff import diff as differences
    from tollkeeper.engine.registry.versions import find_version

    with refusals():
        known = read_account(data, account)
        return differences(*(find_version(known, kind, name, number) for number in (old, new)))


def _of_files(old: Path, new: Path) -> Sequence[Difference]:
    from tollkeeper.engine.offline.testing.files import BrokenFileError, library_of, load_file
    from tollkeeper.engine.publish.diff import Side, diff_sides

    for path in (old, new):
        if not path.is_file():
            raise click.UsageError(f"there is no file {path}")
    try:
        files = [load_file(path, library_of([path.parent])) for path in (old, new)]
    except BrokenFileError as error:
        refuse(str(error))
    if type(files[0].program) is not type(files[1].program):
        refuse("the files declare different things")
    return diff_sides(*(Side(each.program, each.texts) for each in files))
