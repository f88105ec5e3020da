"""`toll serve`."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from tollkeeper.api.terminal.folder import refusals
from tollkeeper.api.terminal.options import data_option
from tollkeeper.api.terminal.output import NO, OK, USAGE, progress_bar, refuse, say, show_rows

if TYPE_CHECKING:
    from tollkeeper.api.http.settings import Settings
    from tollkeeper.engine.journal.source import JournalSource


class Setting(click.Option):
    """An option whose default is that of `Settings`, read when it is needed."""

    def get_default(self, ctx: Any, call: bool = True) -> Any:  # noqa: ARG002 - click's way
        from tollkeeper.api.http.settings import Settings

        return getattr(Settings(), self.name or "")


def setting(name: str, help_: str, type: Any = int) -> Callable[[Callable[..., Any]], Any]:  # noqa: A002 - click's word
    """Return an option of `toll serve`, with its `TOLL_…` variable."""
    return click.option(
        f"--{name.replace('_', '-')}",
        cls=Setting,
        type=type,
        envvar=f"TOLL_{name.upper()}",
        show_default=True,
        show_envvar=True,
        help=help_,
    )


def read_config(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> None:
    """Make the file's settings the options' defaults; options and variables override them."""
    if path is None:
        return
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"`{path}` can't be read: {error}") from None
    known = {parameter.name for parameter in ctx.command.params} - {"config", "check"}
    settings = {name.replace("-", "_"): value for name, value in found.items()}
    if unknown := sorted(settings.keys() - known):
        raise click.BadParameter(f"`{path}` has a setting `{unknown[0]}`, which there is none of")
    ctx.default_map = settings


@click.command(panel="Service")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="TOLL_CONFIG",
    show_envvar=True,
    is_eager=True,
    expose_value=False,
    callback=read_config,
    help="TOML file of settings, by the options' names; options and variables override it.",
)
@data_option
@setting("host", "Address to listen on.", type=str)
@setting("port", "Port to listen on; 0 takes a free one.")
@setting("admin_host", "Address of the listener for health and metrics.", type=str)
@setting("admin_port", "Its port; without one, metrics are shown to this machine only.")
@setting("waiting", "Requests that may wait for the disk at once; more get a 503.")
@setting("connections", "Connections that may be open at once.")
@setting("heads_per_address", "Unfinished request heads that one address may have.")
@setting("idle_seconds", "Seconds without a complete request after which a connection is closed.")
@setting("head_bytes", "Bytes of a request's head; a larger one gets a 431.")
@setting("body_bytes", "Bytes of a JSON body; a larger one gets a 413.")
@setting(
    "body_seconds",
    "Seconds that a body may take to arrive; a slower one gets a 408. A client that takes nothing of its answers for as long is closed.",
)
@setting("drain_seconds", "Seconds that requests in flight get once the service is told to stop.")
@setting("key_reports", "Payments and events a second that a key may send; more get a 429.")
@setting("account_reports", "Payments and events a second that all keys of an account may send.")
@setting("key_work", "Other requests a second that a key may send; more get a 429.")
@setting("account_work", "Other requests a second that all keys of an account may send.")
@setting("account_changes", "Of these, changes of rules, lists, settings and people a second.")
@setting("address_sign_ins", "Times a minute that one address may try to sign in; more get a 429.")
@setting("windows_cap", "Elements that an account's windows may hold.")
@setting("windows_total_cap", "Elements that the windows of all accounts may hold together.")
@setting(
    "late_hours",
    "Hours after its time for which a payment still reads windows and counts in them.",
    click.IntRange(1, 24),
)
@setting("snapshot_minutes", "Minutes between snapshots of the windows.")
@setting("reach", "Where webhooks may go.", type=click.Choice(("public", "any")))
@setting(
    "damage",
    "What to do about entries that can't be read.",
    type=click.Choice(("stop", "skip", "read-only")),
)
@setting(
    "console",
    "Pages for people at /console: `on`, `off`, or HOST:PORT for a listener of their own.",
    type=str,
)
@setting("require_data", "Refuse a folder that has no journal yet.", type=bool)
@setting(
    "telemetry",
    "Address of an OpenTelemetry collector (OTLP over HTTP), without one nothing is sent.",
    type=str,
)
@setting(
    "openid",
    "TOML file of the OpenID Connect providers for the console (docs/console.md).",
    type=click.Path(dir_okay=False, path_type=Path),
)
@setting("node_host", "On a database: address to listen on for other nodes.", type=str)
@setting("node_port", "Its port; 0 takes a free one.")
@setting("node_address", "HOST:PORT by which other nodes reach this one, if different.", type=str)
@setting(
    "node_tls",
    "Folder with authority.pem, certificate.pem and key.pem, by which nodes know each other.",
    type=click.Path(file_okay=False, path_type=Path),
)
@setting(
    "shards",
    "Number of journals that a new database's accounts are divided among, each with an owner.",
)
@click.option("--check", is_flag=True, help="Only check whether the service would start.")
@click.pass_context
def serve(ctx: click.RichContext, /, data: JournalSource, check: bool, **settings: Any) -> None:
    """Start the service."""
    from tollkeeper.api.http.serve import serve as serve_folder
    from tollkeeper.api.http.settings import Settings, SettingsError, StartError
    from tollkeeper.engine.journal.source import folder_of, url_of

    try:
        chosen = Settings(folder=folder_of(data), database=url_of(data), **settings)
        if check:
            sys.exit(tell_start(ctx, chosen))
        with refusals(), progress_bar("filling windows") as progress:
            serve_folder(chosen, progress)
    except SettingsError as error:
        say(str(error), style="red")
        sys.exit(USAGE)
    except StartError as error:
        refuse(str(error))


def tell_start(ctx: click.Context, settings: Settings) -> int:
    """Print each setting with its source, and what would prevent the start; return the exit code."""
    from tollkeeper.api.http.check_start import obstacles

    names = [name for name in settings.__struct_fields__ if name not in ("folder", "database")]
    rows = [("data", str(settings.folder), _source(ctx, "data"))]
    # The database's address may contain a password.
    rows.append(("database", "given" if settings.database else "None", _source(ctx, "database")))
    rows += [(name, str(getattr(settings, name)), _source(ctx, name)) for name in names]
    show_rows(("setting", "value", "from"), rows, False)
    found = obstacles(settings)
    for each in found:
        say(each, style="red")
    say("the service would not start" if found else "the service would start")
    return NO if found else OK


def _source(ctx: click.Context, name: str) -> str:
    source = ctx.get_parameter_source(name)
    return "" if source is None else _SOURCES[source]


_SOURCES = {
    ParameterSource.COMMANDLINE: "option",
    ParameterSource.ENVIRONMENT: "environment",
    ParameterSource.DEFAULT_MAP: "file",
    ParameterSource.DEFAULT: "default",
    ParameterSource.PROMPT: "prompt",
}
