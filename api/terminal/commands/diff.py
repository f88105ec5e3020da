"""`toll diff`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.folder import read_account, refusals, thresholds_of
from tollkeeper.api.terminal.options import data_option, json_option, kind_option
from tollkeeper.api.terminal.output import print_json, print_lines, refuse, say

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.offline.prove.proofs import Proof
    from tollkeeper.engine.publish.diff import Difference, Side
    from tollkeeper.engine.registry.changes import Thresholds

    Sides: TypeAlias = tuple[Side, Side]


@click.command(panel="What decides")
@click.argument("of", nargs=-1, required=True, metavar="NAME OLD NEW | FILE FILE")
@kind_option
@click.option(
    "--account",
    envvar="TOLL_ACCOUNT",
    show_envvar=True,
    help="Name of the account; for two files, the one whose thresholds a proof uses.",
)
@click.option(
    "--prove",
    is_flag=True,
    help="Of two rules: prove that they decide alike, or show a payment that they do not.",
)
@json_option
@data_option
def diff(
    of: tuple[str, ...],
    kind: Any,
    account: str | None,
    prove: bool,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Show what changed in meaning from version OLD of NAME to version NEW, or between two files.

    With --prove it exits 0 when both are proved to decide alike, 1 when a payment tells them apart,
    3 when neither is settled.
    """
    import msgspec

    from tollkeeper.api.terminal.rendering import draw_differences
    from tollkeeper.engine.publish.diff import diff_sides

    if len(of) == 2:
        sides, same = _of_files(Path(of[0]), Path(of[1])), f"{of[0]} and {of[1]}"
    elif len(of) == 3 and of[1].isdecimal() and of[2].isdecimal():
        if account is None:
            raise click.UsageError("versions are those of an account: give --account")
        sides = _of_versions(data, account, kind, of[0], int(of[1]), int(of[2]))
        same = f"versions {of[1]} and {of[2]} of {of[0]}"
    else:
        raise click.UsageError("give a name and two versions, or two files")
    found = diff_sides(*sides)
    proofs = _proofs(sides, thresholds_of(data, account)) if prove else ()
    if as_json_ and not prove:
        print_json(msgspec.to_builtins(found))
    if not as_json_:
        print_lines(draw_differences(found))
        if not found:
            say(f"{same} say the same")
    if prove:
        _show_proofs(found, proofs, as_json_)


def _show_proofs(found: Sequence[Difference], proofs: Sequence[Proof], as_json_: bool) -> NoReturn:
    import msgspec

    from tollkeeper.api.terminal.proof_lines import draw_proof, exit_code_of, proof_json

    if as_json_:
        differences = msgspec.to_builtins(found)
        print_json({"differences": differences, "proofs": [proof_json(each) for each in proofs]})
    else:
        for proof in proofs:
            print_lines(draw_proof(proof))
    sys.exit(exit_code_of(proofs))


def _proofs(sides: Sides, thresholds: Thresholds) -> Sequence[Proof]:
    from tollkeeper.grammar.program import Rule

    with extra("prove"):
        from tollkeeper.engine.offline.prove.proofs import compare_rules
        from tollkeeper.engine.offline.prove.worker import open_worker
    before, after = (side.program for side in sides)
    if not (isinstance(before, Rule) and isinstance(after, Rule)):
        raise click.UsageError("only rules can be proved to decide alike")
    with open_worker() as worker:
        return tuple(compare_rules(worker, after.name, before, after, thresholds=thresholds))


def _of_versions(
    data: JournalSource, account: str, kind: Any, name: str, old: int, new: int
) -> Sides:
    from tollkeeper.engine.publish.diff import side_of
    from tollkeeper.engine.registry.versions import find_version

    with refusals():
        known = read_account(data, account)
        before, after = (find_version(known, kind, name, number) for number in (old, new))
        return side_of(before), side_of(after)


def _of_files(old: Path, new: Path) -> Sides:
    from tollkeeper.engine.offline.testing.files import BrokenFileError, library_of, load_file
    from tollkeeper.engine.publish.diff import Side

    for path in (old, new):
        if not path.is_file():
            raise click.UsageError(f"there is no file {path}")
    try:
        files = [load_file(path, library_of([path.parent])) for path in (old, new)]
    except BrokenFileError as error:
        refuse(str(error))
    if type(files[0].program) is not type(files[1].program):
        refuse("the files declare different things")
    before, after = (Side(each.program, each.texts) for each in files)
    return before, after
