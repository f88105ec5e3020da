"""The commands. Each is thin: it reads its arguments, calls the engine, and says what came out."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TypeVar

import rich_click as click
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from tollkeeper.api.terminal.demo import Decided, Ready
    from tollkeeper.engine.intake.violations import Violation
    from tollkeeper.engine.programs.source import Reading
    from tollkeeper.engine.publish.commands import Answer, Done, Errand
    from tollkeeper.engine.read_folder import Picture
    from tollkeeper.engine.registry.changes import Scope
    from tollkeeper.engine.registry.state import Account
    from tollkeeper.engine.shadows.report import ShadowReport
    from tollkeeper.grammar.diagnostics import Diagnostic
    from tollkeeper.grammar.render import Source

OK, NO, USAGE = 0, 1, 2
PIPE_WIDTH = 10_000
WATCH_EVERY_S = 0.3

T = TypeVar("T")

out = Console()
err = Console(stderr=True)

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data"),
    envvar="TOLL_DATA",
    show_default=True,
    show_envvar=True,
    help="Folder of the service's data.",
)
account_option = click.option(
    "--account", required=True, envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account."
)
json_option = click.option("--json", "as_json_", is_flag=True, help="Print JSON, for a program.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tollkeeper", prog_name="toll")
def main() -> None:
    """Tollkeeper: a payment risk service with a rule language."""


# The service

POSITIVE = click.IntRange(min=1)


class Setting(click.Option):
    """An option whose default is that of `Settings`, looked up when it is asked for."""

    def get_default(self, ctx: Any, call: bool = True) -> Any:  # noqa: ARG002 - click's way
        from tollkeeper.api.http.settings import Settings

        return getattr(Settings(), self.name or "")


def setting(name: str, help_: str, type: Any = int) -> Callable[[Callable[..., Any]], Any]:  # noqa: A002 - click's word
    """An option of `toll serve`, with its `TOLL_…` variable."""
    return click.option(
        f"--{name.replace('_', '-')}",
        cls=Setting,
        type=type,
        envvar=f"TOLL_{name.upper()}",
        show_default=True,
        show_envvar=True,
        help=help_,
    )


@main.command()
@data_option
@setting("host", "Address to listen on.", type=str)
@setting("port", "Port to listen on.")
@setting("waiting", "Requests that may wait for the disk at once; more get a 503.")
@setting("connections", "Connections that may be open at once; more get a 503.")
@setting("idle_seconds", "A connection without a whole request for so long is closed.")
@setting("head_bytes", "Bytes of a request's head; a larger one gets a 431.", POSITIVE)
@setting("body_bytes", "Bytes of a JSON body; a larger one gets a 413.", POSITIVE)
@setting("body_seconds", "How long a body may take to arrive; else it gets a 408.", POSITIVE)
@setting("drain_seconds", "How long requests in flight have once the service is told to stop.")
@setting("windows_cap", "Elements that an account's windows may hold.")
@setting("reach", "Where webhooks may go.", type=click.Choice(("public", "any")))
def serve(data: Path, **settings: Any) -> None:
    """Start the service."""
    from tollkeeper.api.http.serve import serve as serve_folder
    from tollkeeper.api.http.settings import Settings

    with refusals(), progress_bar("filling windows") as progress:
        serve_folder(Settings(folder=data, **settings), progress)


@main.command()
@click.option("--port", default=8000, envvar="TOLL_PORT", show_default=True, show_envvar=True)
def demo(port: int) -> None:
    """Serve a throwaway account with sample traffic, and show what is decided."""
    from tollkeeper.api.terminal.demo import demo as run_demo

    with refusals():
        run_demo(port, show_demo)


def show_demo(told: Ready | Decided) -> None:
    from tollkeeper.api.terminal.demo_lines import demo_lines

    for line in demo_lines(told):
        out.print(line, highlight=False, soft_wrap=True)


# Accounts and keys


@main.group()
def accounts() -> None:
    """Accounts: each has its own keys, rules, lists and payments."""


@accounts.command("create")
@click.argument("name")
@data_option
def create_account(name: str, data: Path) -> None:
    """Make an account."""
    from tollkeeper.engine.publish.commands import CreateAccount

    done(data, CreateAccount(name))
    say(
        f"account [bold]{name}[/] is there; make a key with [cyan]toll keys create --account {name}[/]"
    )


@accounts.command("list")
@json_option
@data_option
def list_accounts(as_json_: bool, data: Path) -> None:
    """List the accounts."""
    from tollkeeper.engine.lists.values import show_instant

    async def ask(picture: Picture) -> list[Account]:
        return list(picture.state.accounts.values())

    found = ask_folder(data, ask)
    rows = [(each.name, show_instant(each.created_at)) for each in found]
    titles = ("name", "created_at")
    show_rows(titles, rows, as_json_)


@accounts.command("show")
@click.argument("name")
@data_option
def show_account(name: str, data: Path) -> None:
    """Print the account's settings as JSON."""
    from tollkeeper.engine.registry.settings import show_settings

    print_json(show_settings(ask_account(data, name).settings))


@accounts.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@data_option
def set_account(name: str, settings: Sequence[str], data: Path) -> None:
    """Change settings: `thresholds.deny=0.9`, `default_rule=checkout`, `default_rule=null`."""
    from tollkeeper.engine.publish.commands import ChangeSettings
    from tollkeeper.engine.publish.set_settings import read_assignments

    with refusals():
        asked = read_assignments(settings)
    changed = done(data, ChangeSettings(name, asked)).count
    say(f"{plural(changed or 0, 'setting')} of account [bold]{name}[/] changed")


@main.group()
def keys() -> None:
    """API keys; each belongs to one account and has scopes."""


@keys.command("create")
@account_option
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(("payments", "rules", "admin")),
    default=("payments",),
    show_default=True,
    help="What the key may do; give it more than once for more scopes.",
)
@data_option
def create_key(account: str, scopes: tuple[Scope, ...], data: Path) -> None:
    """Make a key and print it alone; it is shown this once."""
    from tollkeeper.engine.publish.commands import CreateKey

    print(done(data, CreateKey(account, scopes)).key)  # noqa: T201 - the key alone, for a script


@keys.command("list")
@account_option
@json_option
@data_option
def list_keys(account: str, as_json_: bool, data: Path) -> None:
    """List the account's keys by the part of them that may be shown."""
    from tollkeeper.engine.lists.values import show_instant

    rows = [
        (
            key.id,
            " ".join(key.scopes),
            show_instant(key.created_at),
            "" if key.revoked_at is None else show_instant(key.revoked_at),
        )
        for key in ask_account(data, account).keys.values()
    ]
    titles = ("id", "scopes", "created_at", "revoked_at")
    show_rows(titles, rows, as_json_)


@keys.command("revoke")
@click.argument("key_id")
@account_option
@data_option
def revoke_key(key_id: str, account: str, data: Path) -> None:
    """Revoke the key whose shown part is KEY_ID."""
    from tollkeeper.engine.publish.commands import RevokeKey

    done(data, RevokeKey(account, key_id))
    say(f"key [bold]{key_id}[/] is revoked")


# Rule files


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for a code host.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option("--fix", is_flag=True, help="Write the fixes that can't change a decision.")
def check(paths: Sequence[Path], as_json_: bool, sarif: bool, watch: bool, fix: bool) -> None:
    """Check rule files; exit 1 when one has an error."""
    from tollkeeper.engine.offline.rule_files import check_files, fix_files
    from tollkeeper.grammar.render import as_json, as_sarif

    if watch and (as_json_ or sarif):
        raise click.UsageError("--watch shows a page for people: leave --json and --sarif out")
    if fix:
        for path in fix_files(paths):
            err.print(f"fixed {path}", markup=False, highlight=False, soft_wrap=True)
    if watch:
        watch_files(paths)
    found = check_files(paths)
    if as_json_:
        print_json([item for source, several in found for item in as_json(source, several)])
    elif sarif:
        print_json(as_sarif(found))
    else:
        show_found(found)
    broken = any(each.severity == "error" for _, several in found for each in several)
    sys.exit(NO if broken else OK)


def show_found(found: Sequence[tuple[Source, Sequence[Diagnostic]]]) -> None:
    """What was found in each file, and how much in all."""
    from tollkeeper.grammar.render import as_rich

    for source, several in found:
        if several:
            out.print(as_rich(source, several), soft_wrap=True)
    errors = sum(each.severity == "error" for _, several in found for each in several)
    warnings = sum(len(several) for _, several in found) - errors
    summary = (
        f"{plural(len(found), 'file')}, {plural(errors, 'error')}, {plural(warnings, 'warning')}"
    )
    say(summary, style="bold red" if errors else "bold green")


def watch_files(paths: Sequence[Path]) -> NoReturn:
    """Shows what is found, and again after each change, until the person ends it."""
    from tollkeeper.engine.offline.rule_files import check_files, last_written

    try:
        while True:
            seen = last_written(paths)
            with suppress(FileNotFoundError):  # an editor may be putting a file in place
                found = check_files(paths)
                out.clear()
                show_found(found)
            while last_written(paths) == seen:
                time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        sys.exit(OK)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--check", "check_only", is_flag=True, help="Change nothing; exit 1 when a file would change."
)
def fmt(paths: Sequence[Path], check_only: bool) -> None:
    """Bring rule files into the one layout; comments stay where they are."""
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
            say(escape(f"{'would change' if check_only else 'changed'} {path}"))
    sys.exit(NO if broken or (check_only and changed) else OK)


@main.command()
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


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def init(folder: Path) -> None:
    """Write a folder of rules to begin with: a rule with tests, a case, a workflow."""
    from tollkeeper.engine.offline.testing.starting import OccupiedError, start_folder

    try:
        for path in start_folder(folder):
            say(f"wrote {path}")
    except OccupiedError as error:
        refuse(str(error))


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--accept", is_flag=True, help="Accept what the cases decide now.")
@click.option("--coverage", is_flag=True, help="Tell what no test or case looked at.")
@click.option(
    "--coverage-json", type=click.Path(dir_okay=False, path_type=Path), help="Write it as JSON."
)
@click.option(
    "--coverage-html", type=click.Path(dir_okay=False, path_type=Path), help="Write it as a page."
)
@click.option(
    "--fail-under", type=click.FloatRange(0, 100), help="Exit 1 when less than PERCENT was seen."
)
def test(
    paths: Sequence[Path],
    accept: bool,
    coverage: bool,
    coverage_json: Path | None,
    coverage_html: Path | None,
    fail_under: float | None,
) -> None:
    """Run the tests and cases under PATHS; exit 1 when one fails."""
    from tollkeeper.engine.offline.testing.coverage import percent
    from tollkeeper.engine.offline.testing.coverage_report import as_html
    from tollkeeper.engine.offline.testing.coverage_report import as_json as coverage_as_json
    from tollkeeper.engine.offline.testing.coverage_report import as_text as coverage_as_text
    from tollkeeper.engine.offline.testing.run import run_tests

    run = run_tests(paths, accept=accept)
    for fault in run.faults:
        out.print(f"{fault.place}: {fault.title}", style="bold red", markup=False, highlight=False)
        out.print(indent(fault.text, "  "), markup=False, highlight=False, soft_wrap=True)
        out.print()
    if coverage_json is not None:
        coverage_json.write_text(coverage_as_json(run.coverage), encoding="utf-8")
    if coverage_html is not None:
        coverage_html.write_text(as_html(run.coverage), encoding="utf-8")
    if coverage or fail_under is not None:
        out.print(coverage_as_text(run.coverage), markup=False, highlight=False, soft_wrap=True)
    is_low = fail_under is not None and percent(run.coverage) < fail_under
    if is_low:
        say(f"less than {fail_under:g} % were seen", "bold red")
    failed = f"{len(run.faults)} failed" if run.faults else "all passed"
    summary = f"{plural(run.tests, 'test')}, {plural(run.cases, 'case')}, {failed}"
    say(summary, "bold red" if run.faults else "bold green")
    sys.exit(NO if run.faults or is_low else OK)


@main.command("eval")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--score", type=click.FloatRange(0, 1), help="The score, in place of a scorecard's.")
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Payments and updates before this one, as JSON Lines.",
)
@click.option("--explain", is_flag=True, help="Show the value of every part.")
@json_option
def evaluate(
    file: Path, score: float | None, history: Path | None, explain: bool, as_json_: bool
) -> None:
    """Decide about the payment on standard input with FILE, with no server."""
    import msgspec

    from tollkeeper.api.http.answers import analyses
    from tollkeeper.engine.offline.testing.evaluation import evaluate_payment, explanation_lines
    from tollkeeper.engine.offline.testing.files import BrokenFileError, library_of
    from tollkeeper.engine.offline.testing.streams import StreamError

    try:
        found = evaluate_payment(
            file,
            sys.stdin.buffer.read(),
            library_of([file.parent]),
            now=time.time_ns() // 1000,
            history=history,
            score=None if score is None else round(score * 100),
        )
    except (StreamError, BrokenFileError) as error:
        refuse(str(error))
    told = analyses(found.decision)
    if as_json_:
        answer = {"analyses": told} | (
            {"scorecard": found.scorecard, "rule": found.rule} if explain else {}
        )
        print_json(msgspec.to_builtins(answer if explain else told))
        return
    condition = found.decision.rule and found.decision.rule.condition
    by = f" by {condition}" if condition else ""
    out.print(
        f"{found.decision.action}{by}, score {(found.decision.score or 0) / 100:.2f}",
        highlight=False,
    )
    if explain:
        for line in explanation_lines(found):
            out.print(line, markup=False, highlight=False, soft_wrap=True)


@main.command()
@click.argument("history", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--scorecard",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scorecard whose weights are estimated, in place of the shipped one.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the new text here; standard output otherwise.",
)
def fit(history: Path, scorecard: Path | None, output: Path | None) -> None:
    """Estimate a scorecard's baseline and weights from labelled HISTORY (JSON Lines)."""
    from tollkeeper.api.terminal.drawing import draw_fitted
    from tollkeeper.engine.offline.testing.streams import StreamError
    from tollkeeper.engine.programs.active import SCORECARD
    from tollkeeper.engine.programs.load import SHIPPED
    from tollkeeper.grammar.program import Scorecard

    try:
        from tollkeeper.engine.offline.fit.fitting import FitError
        from tollkeeper.engine.offline.fit.fitting import fit as fit_weights
    except ModuleNotFoundError:
        refuse("fitting needs the extra: pip install 'tollkeeper\\[fit]'")
    path = scorecard or SHIPPED / f"{SCORECARD}.rule"
    reading = readable(path)
    if not isinstance(reading.program, Scorecard):
        refuse(escape(f"{path} is not a scorecard"))
    try:
        with progress_bar("replaying") as progress:
            fitted = fit_weights(reading.text, reading.program, history, progress)
    except (FitError, StreamError, OSError) as error:
        refuse(escape(str(error)))
    err.print(draw_fitted(fitted), soft_wrap=True)
    if output is None:
        sys.stdout.write(fitted.text)
    else:
        output.write_text(fitted.text, encoding="utf-8")
        say(escape(f"wrote {output}"))


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@account_option
@click.option("--draft", is_flag=True, help="Store the version, but don't make it active.")
@click.option("--expected", type=int, help="The newest version you know of; refused past it.")
@data_option
def publish(file: Path, account: str, draft: bool, expected: int | None, data: Path) -> None:
    """Store FILE as a new version and make it active, with the definitions that it uses."""
    from tollkeeper.engine.offline.rule_files import rule_files, used_definitions
    from tollkeeper.engine.publish.commands import Store
    from tollkeeper.engine.registry.versions import kind_of

    reading = readable(file)
    program = reading.program
    assert program is not None
    for name, text in used_definitions(rule_files([file.parent]), reading.uses).items():
        done(data, Store(account, "definitions", name, text, True))
        say(f"definitions [bold]{name}[/] are active")
    with progress_bar("filling windows") as progress:
        answer = done(
            data,
            Store(account, kind_of(program), program.name, reading.text, not draft, expected),
            progress,
        )
    state = "stored" if draft else "active"
    say(f"[bold]{program.name}[/] version {answer.version} is {state}")


def readable(file: Path) -> Reading:
    """What a rule file says; says what is wrong with it, and exits 1 when it has an error."""
    from tollkeeper.engine.offline.rule_files import known_files, rule_files
    from tollkeeper.engine.programs.source import read_file
    from tollkeeper.grammar.render import Source, as_rich

    reading = read_file(file.read_bytes(), known_files(rule_files([file.parent])))
    if reading.diagnostics:
        err.print(as_rich(Source.of(str(file), reading.text), reading.diagnostics), soft_wrap=True)
    if reading.program is None:
        sys.exit(NO)
    return reading


def kind_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kind",
        type=click.Choice(("rule", "scorecard", "event", "definitions")),
        default="rule",
        show_default=True,
    )(command)


@main.command()
@click.argument("name")
@click.argument("version", type=int)
@kind_option
@account_option
@data_option
def activate(name: str, version: int, kind: Any, account: str, data: Path) -> None:
    """Make VERSION of NAME the active one; also rolls back."""
    from tollkeeper.engine.publish.commands import Activate

    with progress_bar("filling windows") as progress:
        done(data, Activate(account, kind, name, version), progress)
    say(f"[bold]{name}[/] version {version} is active")


@main.command()
@click.argument("name")
@kind_option
@account_option
@data_option
def deactivate(name: str, kind: Any, account: str, data: Path) -> None:
    """Take NAME out of force."""
    from tollkeeper.engine.publish.commands import Deactivate

    done(data, Deactivate(account, kind, name))
    say(f"[bold]{name}[/] is not published any more")


@main.command()
@click.argument("name")
@kind_option
@account_option
@json_option
@data_option
def versions(name: str, kind: Any, account: str, as_json_: bool, data: Path) -> None:
    """List the versions of NAME, newest first."""
    from tollkeeper.engine.lists.values import show_instant
    from tollkeeper.engine.registry.versions import find_lineage

    with refusals():
        lineage = find_lineage(ask_account(data, account), kind, name)
    states: defaultdict[int | None, list[str]] = defaultdict(list)
    states[lineage.active].append("active")
    if lineage.rollout is not None:
        states[lineage.rollout.version].append(f"rollout {lineage.rollout.percent}%")
    states[lineage.shadow].append("shadow")
    rows = [
        (
            version.number,
            ", ".join(states[version.number]),
            show_instant(version.stored_at),
            version.stored_by,
            version.checksum[:12],
        )
        for version in reversed(lineage.versions)
    ]
    titles = ("version", "state", "stored_at", "stored_by", "checksum")
    show_rows(titles, rows, as_json_)


@main.command()
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

    from tollkeeper.api.terminal.drawing import draw_differences
    from tollkeeper.engine.publish.diff import diff as differences
    from tollkeeper.engine.registry.versions import find_version

    with refusals():
        known = ask_account(data, account)
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


# Versions on trial


def decider_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--kind", type=click.Choice(("rule", "scorecard")), default="rule", show_default=True
    )(command)


@main.group()
def shadow() -> None:
    """A version that is evaluated beside the active one, recorded, never applied."""


@shadow.command("set")
@click.argument("name")
@click.argument("version", type=int)
@decider_option
@account_option
@data_option
def set_shadow(name: str, version: int, kind: Any, account: str, data: Path) -> None:
    """Evaluate VERSION of NAME beside what decides."""
    from tollkeeper.engine.publish.commands import SetShadow

    with progress_bar("filling windows") as progress:
        done(data, SetShadow(account, kind, name, version), progress)
    say(f"[bold]{name}[/] version {version} is evaluated as a shadow")


@shadow.command("clear")
@click.argument("name")
@decider_option
@account_option
@data_option
def clear_shadow(name: str, kind: Any, account: str, data: Path) -> None:
    """Evaluate the shadow of NAME no longer."""
    from tollkeeper.engine.publish.commands import ClearShadow

    done(data, ClearShadow(account, kind, name))
    say(f"[bold]{name}[/] has no shadow any more")


@shadow.command("report")
@click.argument("name")
@click.option("--version", type=int, help="The version; by default the shadow of now.")
@decider_option
@account_option
@json_option
@data_option
def report_shadow(
    name: str, version: int | None, kind: Any, account: str, as_json_: bool, data: Path
) -> None:
    """Tell how many decisions the shadow of NAME would change, from what to what."""
    import msgspec

    from tollkeeper.api.terminal.drawing import draw_report
    from tollkeeper.engine.registry.accounts import find_account
    from tollkeeper.engine.shadows.report import shadow_report

    async def ask(picture: Picture) -> ShadowReport:
        known = find_account(picture.state, account)
        return shadow_report(picture.journal, known, kind, name, version)

    report = ask_folder(data, ask)
    if as_json_:
        print_json(msgspec.to_builtins(report))
    else:
        out.print(draw_report(report), soft_wrap=True)


@main.group()
def rollout() -> None:
    """A version for a part of the payments, chosen by a key, the same ones each time."""


@rollout.command("set")
@click.argument("name")
@click.argument("version", type=int)
@click.option("--percent", type=int, required=True, help="0 to 100; growing it moves none back.")
@click.option(
    "--by", type=click.Choice(("user", "device", "order")), default="user", show_default=True
)
@decider_option
@account_option
@data_option
def set_rollout(
    name: str, version: int, percent: int, by: str, kind: Any, account: str, data: Path
) -> None:
    """Give a part of the payments VERSION of NAME."""
    from tollkeeper.engine.publish.commands import SetRollout

    with progress_bar("filling windows") as progress:
        done(data, SetRollout(account, kind, name, version, percent, by), progress)
    say(f"[bold]{name}[/] version {version} gets {percent}% of the payments, by {by}")


@rollout.command("clear")
@click.argument("name")
@decider_option
@account_option
@data_option
def clear_rollout(name: str, kind: Any, account: str, data: Path) -> None:
    """Give all payments the active version of NAME again."""
    from tollkeeper.engine.publish.commands import ClearRollout

    done(data, ClearRollout(account, kind, name))
    say(f"[bold]{name}[/] has no rollout any more")


# Lists and tables


@main.group()
def lists() -> None:
    """Lists and tables that rules look things up in."""


@lists.command("make")
@click.argument("name")
@click.option("--type", "type_", type=click.Choice(("string", "number", "ip")), help="Of a list.")
@click.option(
    "--by", type=click.Choice(("value", "prefix", "network")), help="How a table is looked up."
)
@click.option(
    "--column", "columns", multiple=True, help="Of a table: `NAME=TYPE`, or `NAME=one|another`."
)
@account_option
@data_option
def make_list(
    name: str,
    type_: str | None,
    by: str | None,
    columns: Sequence[str],
    account: str,
    data: Path,
) -> None:
    """Make a list or table; one that is there already and serves is left alone."""
    from tollkeeper.engine.publish.commands import MakeList

    types = {key: text.split("|") if "|" in text else text for key, text in pairs(columns)}
    asked = {"type": type_, "by": by, "columns": types or None}
    made = done(data, MakeList(account, name, asked)).count
    say(f"[bold]{name}[/] {'is made' if made else 'is there already'}")


@lists.command("list")
@account_option
@json_option
@data_option
def list_lists(account: str, as_json_: bool, data: Path) -> None:
    """List the account's lists and tables."""
    from tollkeeper.api.http.lists import shown as list_view

    known = ask_account(data, account).lists
    views = [list_view(name, known[name].spec) for name in sorted(known)]
    if as_json_:
        print_json(views)
        return
    rows = [
        (view["name"], view.get("type") or f"table by {view['by']}", json_line(view.get("columns")))
        for view in views
    ]
    show_rows(("name", "type", "columns"), rows, as_json_=False)


@lists.command("show")
@click.argument("name")
@click.option("--limit", default=100, show_default=True, help="At most 500 at once.")
@click.option("--after", help="Begin beyond this value.")
@account_option
@json_option
@data_option
def show_list(
    name: str, limit: int, after: str | None, account: str, as_json_: bool, data: Path
) -> None:
    """Show the entries of a list, ordered by value."""
    from tollkeeper.engine.lists.entries import show_entry
    from tollkeeper.engine.publish.change_lists import page as entries_page
    from tollkeeper.engine.registry.accounts import find_account
    from tollkeeper.engine.registry.lists import find_list

    async def ask(picture: Picture) -> tuple[list[dict[str, Any]], str | None]:
        known = find_account(picture.state, account)
        spec = find_list(known, name).spec
        page = await entries_page(picture.journal, known.number, name, after, limit)
        return [show_entry(spec, entry) for entry in page.entries], page.cursor

    entries, cursor = ask_folder(data, ask)
    if as_json_:
        print_json({"entries": entries, "cursor": cursor})
        return
    titles = ("value", "columns", "expires_at", "note", "by")
    rows = [
        tuple(
            json_line(entry.get(key)) if key == "columns" else entry.get(key, "") for key in titles
        )
        for entry in entries
    ]
    show_rows(titles, rows, as_json_=False)
    if cursor is not None:
        say(escape(f"there are more: --after {cursor}"))


@lists.command("add")
@click.argument("name")
@click.argument("values", nargs=-1, required=True)
@click.option("--column", "columns", multiple=True, help="Of a table's row: `NAME=VALUE`.")
@click.option("--expires-at", help="A time of RFC 3339, such as 2030-01-31T12:00:00Z.")
@click.option("--note", help="Why it is there.")
@account_option
@data_option
def add_entries(
    name: str,
    values: Sequence[str],
    columns: Sequence[str],
    expires_at: str | None,
    note: str | None,
    account: str,
    data: Path,
) -> None:
    """Add entries to a list, or renew those that are there."""
    from tollkeeper.engine.publish.commands import PutEntries

    shared: dict[str, Any] = {"expires_at": expires_at, "note": note}
    if columns:
        shared["columns"] = dict(pairs(columns))
    entries = [{"value": value, **shared} for value in values]
    done(data, PutEntries(account, name, entries))
    say(f"{plural(len(entries), 'entry')} in [bold]{name}[/]")


@lists.command("remove")
@click.argument("name")
@click.argument("values", nargs=-1, required=True)
@account_option
@data_option
def remove_entries(name: str, values: Sequence[str], account: str, data: Path) -> None:
    """Remove entries from a list."""
    from tollkeeper.engine.publish.commands import RemoveEntries

    count = done(data, RemoveEntries(account, name, list(values))).count
    say(f"{plural(count or 0, 'entry')} removed from [bold]{name}[/]")


@lists.command("import")
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--column",
    "columns",
    multiple=True,
    help="FILE is a MaxMind DB, and this column is there: `country=country.iso_code`.",
)
@account_option
@data_option
def import_list(name: str, file: Path, columns: Sequence[str], account: str, data: Path) -> None:
    """Replace all that a list holds by the entries of FILE, a CSV with a header, or nothing."""
    from tollkeeper.engine.lists.imports import Imported
    from tollkeeper.engine.publish.import_lists import import_file

    with refusals(), progress_bar(f"reading {file.name}") as progress:
        found = import_file(data, account, name, file, dict(pairs(columns)), "toll", progress)
    if not isinstance(found, Imported):
        say(f"{plural(answered(found).count or 0, 'entry')} in [bold]{name}[/] now")
        return
    for bad in found.bad:
        say(escape(f"{file.name}: {bad.place}: {bad.message}"), style="red")
    if found.bad_count > len(found.bad):
        say(f"and {found.bad_count - len(found.bad)} more", style="red")
    refuse(f"{plural(found.bad_count, 'bad entry')}: [bold]{name}[/] is as it was")


@lists.command("export")
@click.argument("name")
@click.argument("file", type=click.File("w", encoding="utf-8", lazy=False), default="-")
@account_option
@data_option
def export_list(name: str, file: Any, account: str, data: Path) -> None:
    """Write the entries of a list as CSV to FILE, or to standard output."""
    from tollkeeper.engine.publish.import_lists import export_file

    with refusals(), counter("entries") as count:
        exported = export_file(data, account, name, file, count)
    say(f"{plural(exported, 'entry')} of [bold]{name}[/]")


# Backtests


@main.command()
@click.argument("candidate")
@click.option(
    "--since", help="`30d`, `12h`, or a day; by default `30d`, of a file all that it holds."
)
@click.option("--account", envvar="TOLL_ACCOUNT", show_envvar=True, help="Name of the account.")
@click.option(
    "--history",
    "histories",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSONL, CSV or Parquet in place of an account's history.",
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What is known of payments by now.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page.")
@click.option("--summary", "markdown", is_flag=True, help="Print Markdown, for a pull request.")
@json_option
@data_option
def backtest(
    candidate: str,
    since: str | None,
    account: str | None,
    histories: tuple[Path, ...],
    labels: Path | None,
    html: Path | None,
    markdown: bool,
    as_json_: bool,
    data: Path,
) -> None:
    """Try CANDIDATE, a file or NAME@VERSION, on stored history."""
    import msgspec

    from tollkeeper.api.terminal.drawing import draw_backtest
    from tollkeeper.engine.offline.backtest.backtest import backtest_account, backtest_files
    from tollkeeper.engine.offline.backtest.files import HistoryError
    from tollkeeper.engine.offline.backtest.given import (
        GivenError,
        read_candidate,
        read_labels,
        read_since,
    )
    from tollkeeper.engine.offline.backtest.page import page as backtest_page
    from tollkeeper.engine.offline.backtest.words import summary as backtest_summary
    from tollkeeper.engine.offline.testing.files import BrokenFileError
    from tollkeeper.engine.open import now

    if bool(account) == bool(histories):
        raise click.UsageError("give either --account or --history")
    try:
        with refusals():
            program, event_types = read_candidate(candidate, account, data)
            moment = now()
            begin = read_since(since or ("30d" if account else "1970-01-01"), moment)
            known = {} if labels is None else read_labels(labels)
            with progress_bar("replaying") as progress:
                report = (
                    backtest_account(data, account, program, (begin, moment), known, progress)
                    if account
                    else backtest_files(histories, program, event_types, begin, known, progress)
                )
    except (BrokenFileError, GivenError, HistoryError) as error:
        refuse(escape(str(error)))
    if html is not None:
        html.write_text(backtest_page(report), encoding="utf-8")
    if as_json_:
        print_json(msgspec.to_builtins(report))
    elif markdown:
        print("\n".join(backtest_summary(report)))  # noqa: T201 - for a pull request
    else:
        out.print(draw_backtest(report), soft_wrap=True)


# Events


@main.group()
def events() -> None:
    """Event types, and events for a running service."""


@events.command("publish")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--breaking", is_flag=True, help="The contract changes; give --from too.")
@click.option("--from", "applies_from", metavar="TIME", help="From when it applies (RFC 3339).")
@account_option
@data_option
def publish_event_type(
    file: Path, breaking: bool, applies_from: str | None, account: str, data: Path
) -> None:
    """Store the event type in FILE as a new version and make it active."""
    from tollkeeper.engine.events.versions import Planned
    from tollkeeper.engine.publish.commands import Store
    from tollkeeper.grammar.program import EventType

    reading = readable(file)
    if not isinstance(reading.program, EventType):
        refuse(escape(f"{file} is not an event type"))
    name = reading.program.name
    since = since_option(applies_from) if applies_from else None
    errand = Store(account, "event", name, reading.text, True, None, Planned(breaking, since))
    with progress_bar("filling windows") as progress:
        answer = done(data, errand, progress)
    say(f"[bold]{name}[/] version {answer.version} is active")


@events.command("list")
@account_option
@json_option
@data_option
def list_event_types(account: str, as_json_: bool, data: Path) -> None:
    """List the event types, with the version that is active."""
    files = ask_account(data, account).files
    rows = [
        (name, len(lineage.versions), lineage.active)
        for (kind, name), lineage in sorted(files.items())
        if kind == "event"
    ]
    show_rows(("name", "newest", "active"), rows, as_json_)


@events.command("deactivate")
@click.argument("name")
@account_option
@data_option
def deactivate_event_type(name: str, account: str, data: Path) -> None:
    """Take an event type out of force: its events are refused from now on."""
    from tollkeeper.engine.publish.commands import Deactivate

    done(data, Deactivate(account, "event", name))
    say(f"[bold]{name}[/] is not published any more")


@events.command("send")
@click.argument("file", type=click.File("rb", lazy=False), default="-")
@click.option(
    "--url",
    default="http://127.0.0.1:8000/v1",
    envvar="TOLL_URL",
    show_default=True,
    show_envvar=True,
    help="Base address of the service.",
)
@click.option("--key", required=True, envvar="TOLL_KEY", show_envvar=True, help="API key.")
def send(file: BinaryIO, url: str, key: str) -> None:
    """Send events, one JSON object a line, to a running service; exit 1 when one was refused."""
    import httpx

    from tollkeeper.api.terminal.sending import send_events

    lines = file.readlines()
    kept = refused = 0
    with progress_bar("sending") as progress:
        try:
            for sent in send_events(url, key, lines):
                kept += not sent.errors
                refused += bool(sent.errors)
                for error in sent.errors:
                    say(escape(f"line {sent.line}: {error['field']}: {error['message']}"), "red")
                progress(sent.line / len(lines))
        except httpx.HTTPError as error:
            refuse(escape(f"no answer from `{url}`: {error}"))
    say(f"{plural(kept, 'event')} kept, {refused} refused", "bold red" if refused else "bold green")
    sys.exit(NO if refused else OK)


# What happened


@main.command()
@click.argument("payment_id")
@account_option
@json_option
@data_option
def explain(payment_id: str, account: str, as_json_: bool, data: Path) -> None:
    """Explain a stored decision: its signals, its conditions, the value of every part."""
    import msgspec

    from tollkeeper.api.http.views import explanation_view
    from tollkeeper.api.terminal.drawing import draw_explanation
    from tollkeeper.engine.explain.explain import explain as explain_payment
    from tollkeeper.engine.registry.accounts import find_account

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await explain_payment(picture.journal, number, payment_id)

    found = ask_folder(data, ask)
    if found is None:
        refuse("no payment has this id")
    if as_json_:
        print_json(msgspec.to_builtins(explanation_view(found)["explanation"]))
    else:
        out.print(draw_explanation(found), soft_wrap=True, highlight=False)


@main.command()
@account_option
@click.option("--since", help="A time of RFC 3339; none that arrived before it.")
@click.option("--action", type=click.Choice(("allow", "challenge", "deny")))
@click.option("--rule", help="Only those that this rule was applied to.")
@click.option("--limit", default=20, show_default=True)
@click.option("--cursor", type=int, help="Continue where an earlier page ended.")
@json_option
@data_option
def decisions(
    account: str,
    since: str | None,
    action: Any,
    rule: str | None,
    limit: int,
    cursor: int | None,
    as_json_: bool,
    data: Path,
) -> None:
    """List decisions, newest first."""
    import msgspec

    from tollkeeper.api.http.views import decided_view
    from tollkeeper.api.terminal.demo_lines import decision_line
    from tollkeeper.engine.explain.records import decided_page
    from tollkeeper.engine.registry.accounts import find_account

    start = since_option(since)

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await decided_page(
            picture.journal,
            number,
            since=start,
            action=action,
            rule=rule,
            cursor=cursor,
            limit=limit,
        )

    page = ask_folder(data, ask)
    items = [msgspec.to_builtins(decided_view(item)) for item in page.items]
    if as_json_:
        print_json({"decisions": items, "cursor": page.cursor})
        return
    for item in items:
        out.print(decision_line(item), highlight=False, soft_wrap=True)
    continued(page.cursor)


@main.command()
@account_option
@click.option("--since", help="A time of RFC 3339; none made before it.")
@click.option("--limit", default=20, show_default=True)
@click.option("--cursor", type=int, help="Continue where an earlier page ended.")
@json_option
@data_option
def audit(
    account: str, since: str | None, limit: int, cursor: int | None, as_json_: bool, data: Path
) -> None:
    """List who changed what, newest first."""
    from tollkeeper.api.http.views import audit_view
    from tollkeeper.engine.explain.records import audit_page
    from tollkeeper.engine.registry.accounts import find_account

    start = since_option(since)

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await audit_page(picture.journal, number, since=start, cursor=cursor, limit=limit)

    page = ask_folder(data, ask)
    items = [audit_view(item) for item in page.items]
    if as_json_:
        print_json({"audit": items, "cursor": page.cursor})
        return
    rows = [
        (item["at"], item["by"], item["action"], item["subject"], json_line(item["detail"]))
        for item in items
    ]
    show_rows(("at", "by", "action", "subject", "detail"), rows, as_json_=False)
    continued(page.cursor)


@main.command()
@click.option("--user", required=True, help="The user's identifier, as payments name it.")
@account_option
@data_option
def erase(user: str, account: str, data: Path) -> None:
    """Erase one person's data for good: from payments, events, alerts, lists and windows."""
    from tollkeeper.engine.publish.commands import EraseUser

    erased = done(data, EraseUser(account, user)).erased
    assert erased is not None
    told = (plural(erased.payments, "payment"), plural(erased.events, "event"))
    say(f"erased from {', '.join(told)} and {plural(erased.alerts, 'alert')}")
    for name, count in erased.list_entries.items():
        say(f"{plural(count, 'entry')} removed from the list [bold]{name}[/]")


# What the commands share


def ask_folder(data: Path, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """What a command reads of the data folder; says why and exits 1 when it can't."""
    from tollkeeper.engine.read_folder import read_folder

    with refusals():
        return read_folder(data, ask)


def ask_account(data: Path, name: str) -> Account:
    from tollkeeper.engine.registry.accounts import find_account

    async def ask(picture: Picture) -> Account:
        return find_account(picture.state, name)

    return ask_folder(data, ask)


def since_option(text: str | None) -> int:
    """The time in µs, 0 when none was given."""
    from tollkeeper.engine.lists.values import read_instant

    if text is None:
        return 0
    try:
        return read_instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None


def pairs(options: Sequence[str]) -> list[tuple[str, str]]:
    """Options of the form `NAME=VALUE`."""
    split = [option.partition("=") for option in options]
    for name, equals, _ in split:
        if not (name and equals):
            raise click.BadParameter(
                f"`{name}` is not of the form NAME=VALUE", param_hint="--column"
            )
    return [(name, value) for name, _, value in split]


def show_rows(titles: Sequence[str], rows: Sequence[Sequence[object]], as_json_: bool) -> None:
    """A table for people, or for a program an object for each row."""

    from rich.table import Table

    if as_json_:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title.replace("_", " "), no_wrap=not out.is_terminal)
    for row in rows:
        table.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
    # In a pipe nothing is cut to a width.
    (out if out.is_terminal else Console(width=PIPE_WIDTH)).print(table, soft_wrap=True)


def json_line(value: Any) -> str:
    import msgspec

    return "" if not value else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def continued(cursor: int | None) -> None:
    if cursor is not None:
        say(f"there are more: --cursor {cursor}")


def done(
    data: Path, errand: Errand, progress: Callable[[float], None] = lambda _share: None
) -> Done:
    """What came of an errand; says why and exits 1 when nothing did."""
    from tollkeeper.engine.publish.commands import run_errand

    with refusals():
        return answered(run_errand(data, errand, "toll", progress))


def answered(answer: Answer) -> Done:
    """What was done; says why and exits 1 when nothing was."""
    from tollkeeper.engine.publish.commands import NotDone

    if isinstance(answer, NotDone):
        refuse_all(answer.errors)
    return answer


@contextmanager
def refusals() -> Iterator[None]:
    """What the data folder refuses, as one line for a person."""
    from tollkeeper.engine.journal.contract import JournalError
    from tollkeeper.engine.lists.maxmind_file import BadDatabase
    from tollkeeper.engine.registry.errors import Refused

    try:
        yield
    except Refused as refused:
        refuse_all(refused.violations)
    except (JournalError, BadDatabase) as error:
        refuse(escape(str(error)))


def refuse_all(violations: Sequence[Violation]) -> NoReturn:
    for violation in violations:
        say(escape(f"{violation.field}: {violation.message}"), style="red")
    sys.exit(NO)


def refuse(message: str) -> NoReturn:
    say(message, style="red")
    sys.exit(NO)


def say(message: str, style: str = "") -> None:
    """A line for a person, on standard error; never broken to a width in a pipe."""
    err.print(message, style=style, highlight=False, soft_wrap=True)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float], None]]:
    """A bar on a terminal, nothing in a pipe; it shows once there is progress to tell."""

    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    if not err.is_terminal:
        yield lambda _share: None
        return
    columns = (TextColumn(label), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(label, total=1.0, visible=False)
        yield lambda share: bar.update(task, completed=share, visible=share < 1.0)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int], None]]:
    """A running count on a terminal, nothing in a pipe."""
    if not err.is_terminal:
        yield lambda _count: None
        return
    with err.status(label) as status:
        yield lambda count: status.update(f"{count} {label}")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))  # noqa: T201 - for a program


def plural(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
