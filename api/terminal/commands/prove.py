"""`toll prove`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from tollkeeper.api.terminal.extras import extra
from tollkeeper.api.terminal.folder import thresholds_of
from tollkeeper.api.terminal.options import NEW_FILE, data_option, json_option, paths_argument
from tollkeeper.api.terminal.output import out, plural, print_json, say
from tollkeeper.api.terminal.rule_file import read_rule_file
from tollkeeper.engine.offline.paths import is_rule

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.offline.prove.proofs import Proof
    from tollkeeper.engine.registry.changes import Thresholds


@click.command(panel="Rule files")
@paths_argument(is_rule)
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A former version of the one rule file: do both decide every payment alike?",
)
@click.option(
    "--by",
    type=click.Choice(("condition", "action")),
    default="condition",
    show_default=True,
    help="With --against: what counts as deciding alike.",
)
@click.option(
    "--as-test",
    type=NEW_FILE,
    help="Append the payments that refute something to this file, as tests.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1, max=600),
    default=2.0,
    show_default=True,
    help="The work that the solver may do for one question, as its usual time.",
)
@click.option(
    "--account",
    envvar="TOLL_ACCOUNT",
    show_envvar=True,
    help="The account whose thresholds are used; by default the standard ones.",
)
@json_option
@data_option
def prove(
    paths: Sequence[Path],
    against: Path | None,
    by: Any,
    as_test: Path | None,
    seconds: float,
    account: str | None,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Prove what rules can and must do, or show the payment that refutes it.

    Tests for every condition whether a payment can reach and meet it, and for every `must`
    whether it holds. Exits 0 when all is proved, 1 when something is refuted, 3 when something is
    not proved.
    """
    with extra("prove"):
        from tollkeeper.api.terminal.proof_lines import draw_proof, exit_code_of, proof_json
        from tollkeeper.engine.offline.prove.as_test import tests_to_add
    from tollkeeper.engine.offline.rule_files import rule_files

    files = rule_files(paths)
    if against is not None and len(files) != 1:
        raise click.UsageError("--against compares one rule file with its former version")
    found: list[Proof] = []
    for proof in _proofs(files, against, by, seconds, thresholds_of(data, account)):
        found.append(proof)
        if not as_json_:
            for line in draw_proof(proof):
                out.print(line, soft_wrap=True)
    if as_json_:
        print_json([proof_json(proof) for proof in found])
    if as_test is not None:
        tests = [each.test for each in found if each.verdict.answer == "refuted" and each.test]
        added = tests_to_add(as_test.read_text() if as_test.exists() else "", tests)
        with as_test.open("a") as file:
            file.writelines(f"\n{test}" for test in added)
        say(f"{plural(len(added), 'test')} written to {as_test}")
    answers = [each.verdict.answer for each in found]
    counts = ", ".join(
        f"{answers.count(each)} {each}" for each in ("proved", "refuted", "not proved")
    )
    say(f"{plural(len(files), 'file')}: {counts}")
    sys.exit(exit_code_of(found))


def _proofs(
    files: Sequence[Path],
    against: Path | None,
    by: Any,
    seconds: float,
    thresholds: Thresholds,
) -> Iterator[Proof]:
    from tollkeeper.engine.offline.prove.proofs import compare_rules, prove_rule
    from tollkeeper.engine.offline.prove.worker import open_worker
    from tollkeeper.grammar.program import Rule

    with open_worker(seconds) as worker:
        for file in files:
            program = read_rule_file(file).program
            if not isinstance(program, Rule):
                continue
            if against is None:
                yield from prove_rule(worker, str(file), program, thresholds)
                continue
            former = read_rule_file(against).program
            if not isinstance(former, Rule):
                raise click.UsageError(f"{against} is no rule")
            yield from compare_rules(worker, str(file), former, program, by, thresholds)
