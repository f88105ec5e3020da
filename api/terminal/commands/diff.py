"""`toll diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from tollkeeper.api.terminal.folder import read_account, refusals
from tollkeeper.api.terminal.options import account_option, data_option, json_option, kind_option
from tollkeeper.api.terminal.output import out, print_json, say


@click.command(panel="What decides")
@click.argument("name")
@click.argument("old", type=int)
@click.argument("new", type=int)
@kind_option
@account_option
@json_option
@data_option
def diff(
    name: str, old: int, new: int, kind: Any, account: str, as_json_: bool, data: Path
) -> None:
    """Tell what changed in meaning from version OLD of NAME to version NEW."""
    import msgspec

    from tollkeeper.api.terminal.rendering import draw_differences
    from tollkeeper.engine.publish.diff import diff as differences
    from tollkeeper.engine.registry.versions import find_version

    with refusals():
        known = read_account(data, account)
        before, after = (find_version(known, kind, name, number) for number in (old, new))
        found = differences(before, after)
    if as_json_:
        print_json(msgspec.to_builtins(found))
        return
    for line in draw_differences(found):
        out.print(line, soft_wrap=True)
    if not found:
        same = "are the same" if before.text == after.text else "say the same in other words"
        say(f"versions {old} and {new} of [bold]{name}[/] {same}")
