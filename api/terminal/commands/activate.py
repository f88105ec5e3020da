"""`toll activate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account, refusals
from tollkeeper.api.terminal.options import (
    account_option,
    author_option,
    data_option,
    kind_option,
    reason_option,
    until_option,
)
from tollkeeper.api.terminal.output import progress_bar, refuse_all, say, warn_all

if TYPE_CHECKING:
    from tollkeeper.engine.intake.violations import Violation
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.registry.state import Account


@click.command(panel="What decides")
@click.argument("name")
@click.argument("version", type=int)
@kind_option
@account_option
@until_option
@reason_option
@click.option(
    "--untested",
    is_flag=True,
    help="Publish it although its own tests fail or a `must` does not hold.",
)
@author_option
@data_option
def activate(
    name: str,
    version: int,
    kind: Any,
    account: str,
    until: int | None,
    reason: str,
    untested: bool,
    data: JournalSource,
) -> None:
    """Make VERSION of NAME the active one; also rolls back.

    The tests of a version that has not decided before run first.
    """
    from tollkeeper.engine.publish.activate import Activate
    from tollkeeper.engine.registry.versions import Terms

    terms = Terms(untested=untested, until=until, reason=reason)

    if not untested:
        warn_all(require_passing_version(read_account(data, account), kind, name, version))
    with progress_bar("filling windows") as progress:
        done = perform(data, Activate(account, kind, name, version, terms), progress)
    warn_all(done.warnings)
    say(f"{name} version {version} is active")


def require_passing_version(
    of: Account, kind: Any, name: str, number: int
) -> tuple[Violation, ...]:
    """Return what the version is warned of; exit with 1 and the failing tests, if it has not decided
    before and fails any.
    """
    from tollkeeper.engine.offline.testing.files import read_library, stored_library
    from tollkeeper.engine.offline.testing.publishable import try_text
    from tollkeeper.engine.publish.activate import place_diagnostics
    from tollkeeper.engine.registry.trials import has_decided
    from tollkeeper.engine.registry.versions import find_version

    with refusals():
        version = find_version(of, kind, name, number)
    if has_decided(of, version):
        return ()
    library = read_library(stored_library(of))
    found = try_text(version.text.encode(), library, of.settings.thresholds)
    errors = [each for each in found if each.severity == "error"]
    if errors:
        refuse_all(place_diagnostics(name, version.text, errors))
    return tuple(place_diagnostics(name, version.text, found))
