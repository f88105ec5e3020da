"""The options that several commands take, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rich_click as click

AUTHOR = "tollkeeper.author"
"""Where a command's context keeps who makes its change."""

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    envvar="TOLL_DATA",
    show_default=True,
    show_envvar=True,
    help="Folder of the service's data.",
)
author_option = click.option(
    "--author",
    envvar="TOLL_AUTHOR",
    show_envvar=True,
    expose_value=False,
    callback=lambda context, _option, name: context.meta.update({AUTHOR: name}),
    help="Who makes the change, as the audit shows it; the system's user when left out.",
)
account_option = click.option(
    "--account", required=True, envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account."
)
json_option = click.option("--json", "as_json_", is_flag=True, help="Print JSON, for a program.")


def kind_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kind",
        type=click.Choice(("rule", "scorecard", "event", "definitions")),
        default="rule",
        show_default=True,
    )(command)


def decider_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kind", type=click.Choice(("rule", "scorecard")), default="rule", show_default=True
    )(command)


def read_time(text: str | None) -> int:
    """The time in µs, 0 when none was given."""
    from tollkeeper.engine.lists.values import read_instant

    if text is None:
        return 0
    try:
        return read_instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None


def _read_until(_context: click.Context, _option: click.Parameter, text: str | None) -> int | None:
    from tollkeeper.engine.open import now
    from tollkeeper.engine.publish.activate import read_until

    try:
        return None if text is None else read_until(text, now())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--until") from None


until_option = click.option(
    "--until",
    metavar="INSTANT|SPAN",
    callback=_read_until,
    help="When what is active now is active again: `2027-01-01T06:00Z`, or `6h`.",
)
reason_option = click.option("--reason", default="", help="Why, for the audit.")


def read_pairs(options: Sequence[str]) -> list[tuple[str, str]]:
    """Options of the form `NAME=VALUE`."""
    split = [option.partition("=") for option in options]
    for name, equals, _ in split:
        if not (name and equals):
            raise click.BadParameter(
                f"`{name}` is not of the form NAME=VALUE", param_hint="--column"
            )
    return [(name, value) for name, _, value in split]
