"""`toll fields`."""

from __future__ import annotations

import sys

import rich_click as click
from rich.text import Text

from tollkeeper.api.terminal.options import json_option
from tollkeeper.api.terminal.output import NO, OK, out, print_json, say


@click.command(panel="Rule files")
@click.argument("pattern", default="")
@json_option
def fields(pattern: str, as_json_: bool) -> None:
    """List what a rule can name: fields, functions and shipped velocities whose names hold PATTERN,
    or fit it (`device.*`).
    """
    import msgspec

    from tollkeeper.engine.facts.reference import fits
    from tollkeeper.engine.facts.vocabulary import full_vocabulary
    from tollkeeper.engine.programs.reference import every_name
    from tollkeeper.grammar.checker.field_meant import fields_meant, where_it_is
    from tollkeeper.grammar.words import did_you_mean, listed

    names = every_name()
    found = [each for each in names if fits(each.name, pattern)]
    if as_json_:
        print_json(msgspec.to_builtins(found))
    elif not found:
        likely = did_you_mean(pattern, [part for each in names for part in _spellings(each.name)])
        path = tuple(pattern.split("."))
        if meant := fields_meant(path, full_vocabulary().payment):
            likely = f"did you mean {listed(meant)}?"
        elif (asked_so := where_it_is(path)) is not None:
            likely = asked_so
        message = f"nothing that a rule can name fits `{pattern}`"
        say(f"{message}; {likely}" if likely else message, style="red")
    else:
        width = max(len(field.name) for field in found)
        for field in found:
            name = f"{field.name:<{width}}"
            line = Text.assemble((name, "bold"), "  ", (field.type, "cyan"), f"  {field.doc}")
            out.print(line, soft_wrap=True)
    sys.exit(OK if found else NO)


def _spellings(name: str) -> tuple[str, ...]:
    """Return the spellings that a person may have mistyped: the whole name, or its last part."""
    bare = name.partition("(")[0]
    return (bare, bare.rpartition(".")[2])
