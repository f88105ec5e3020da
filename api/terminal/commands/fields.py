"""`toll fields`."""

from __future__ import annotations

import sys

import rich_click as click
from rich.markup import escape

from tollkeeper.api.terminal.options import json_option
from tollkeeper.api.terminal.output import NO, OK, out, print_json, say


@click.command(panel="Rule files")
@click.argument("pattern", default="")
@json_option
def fields(pattern: str, as_json_: bool) -> None:
    """List what a rule can name: fields that hold PATTERN, or fit it (`device.*`)."""
    import msgspec

    from tollkeeper.engine.facts.reference import find_fields

    found = find_fields(pattern)
    if as_json_:
        print_json(msgspec.to_builtins(found))
    elif not found:
        say(escape(f"no field fits `{pattern}`"), style="red")
    else:
        width = max(len(field.name) for field in found)
        for field in found:
            name = f"[bold]{field.name:<{width}}[/]"
            line = f"{name}  [cyan]{escape(field.type)}[/]  {escape(field.doc)}"
            out.print(line, highlight=False, soft_wrap=True)
    sys.exit(OK if found else NO)
