"""`toll fmt`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from tollkeeper.api.terminal.options import paths_argument
from tollkeeper.api.terminal.output import NO, OK, out, say
from tollkeeper.engine.offline.paths import is_rule


@click.command(panel="Rule files")
@paths_argument(is_rule)
@click.option(
    "--check", "check_only", is_flag=True, help="Change nothing; exit 1 when a file would change."
)
def fmt(paths: Sequence[Path], check_only: bool) -> None:
    """Format rule files; comments stay where they are."""
    from tollkeeper.engine.offline.rule_files import formatted_file, replace_file, rule_files
    from tollkeeper.grammar.render import Source, as_rich

    changed = broken = 0
    for path in rule_files(paths):
        text, formatted, errors = formatted_file(path)
        if formatted is None:
            out.print(as_rich(Source.of(str(path), text), errors), soft_wrap=True)
            broken += 1
        elif formatted != text:
            changed += 1
            if not check_only:
                replace_file(path, formatted)
            say(f"{'would change' if check_only else 'changed'} {path}")
    sys.exit(NO if broken or (check_only and changed) else OK)
