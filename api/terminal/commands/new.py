"""`toll new`."""

from __future__ import annotations

import re
from pathlib import Path

import rich_click as click

from tollkeeper.api.terminal.options import json_option
from tollkeeper.api.terminal.output import refuse, say, show_rows

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@click.command(panel="Rule files")
@click.argument("template", required=False)
@click.option("--name", help="Name of the rule; by default the template's.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to write it; by default here.",
)
@json_option
def new(template: str | None, name: str | None, folder: Path, as_json_: bool) -> None:
    """Write a tested rule from TEMPLATE; without one, list the templates."""
    from tollkeeper.api.terminal.templates import start_rule, templates
    from tollkeeper.engine.offline.testing.starting import OccupiedError
    from tollkeeper.grammar.words import did_you_mean

    if template is None:
        show_rows(("template", "purpose"), templates(), as_json_)
        return
    called = name or template
    if _NAME.fullmatch(called) is None:
        raise click.BadParameter("a name has letters, digits and `_`", param_hint="--name")
    try:
        for path in start_rule(template, folder, called):
            say(f"wrote {path}")
    except LookupError:
        likely = did_you_mean(template, [each.name for each in templates()])
        message = f"there is no template `{template}`"
        refuse(f"{message}; {likely}" if likely else f"{message}; `toll new` lists them")
    except OccupiedError as error:
        refuse(str(error))
