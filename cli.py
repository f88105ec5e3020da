"""The commands. Each is thin: it reads its arguments, calls the engine, and says what came out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import Any, BinaryIO, NoReturn, TypeVar, get_args

import httpx
import msgspec
import rich_click as click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from tollkeeper.api.answers import analyses
from tollkeeper.api.demo import Decided, Ready, curl_line
from tollkeeper.api.demo import demo as run_demo
from tollkeeper.api.lists import shown as list_view
from tollkeeper.api.sending import send_events
from tollkeeper.api.serve import serve as serve_folder
from tollkeeper.api.settings import Settings
from tollkeeper.api.views import audit_view, decided_view, explanation_view
from tollkeeper.engine.backtest.backtest import backtest_account, backtest_files
from tollkeeper.engine.backtest.files import HistoryError
from tollkeeper.engine.backtest.given import GivenError, read_labels, read_since
from tollkeeper.engine.backtest.page import page as backtest_page
from tollkeeper.engine.backtest.plan import NotReplayableError
from tollkeeper.engine.backtest.report import summary as backtest_summary
from tollkeeper.engine.backtest.stored import account_now
from tollkeeper.engine.checking import Reading, read_file
from tollkeeper.engine.decision import Action
from tollkeeper.engine.diff import diff as differences
from tollkeeper.engine.drawing import (
    ACTION_STYLES,
    draw_backtest,
    draw_differences,
    draw_explanation,
    draw_fitted,
    draw_report,
)
from tollkeeper.engine.errands import (
    Activate,
    Answer,
    ChangeSettings,
    ClearRollout,
    ClearShadow,
    CreateAccount,
    CreateKey,
    Deactivate,
    Done,
    EraseUser,
    Errand,
    MakeList,
    NotDone,
    PutEntries,
    RemoveEntries,
    RevokeKey,
    SetRollout,
    SetShadow,
    Store,
    run_errand,
)
from tollkeeper.engine.events.reach import Reach
from tollkeeper.engine.events.versions import Planned
from tollkeeper.engine.explaining import explain as explain_payment
from tollkeeper.engine.files import known_files, rule_files, used_definitions
from tollkeeper.engine.importing import export_file, import_file
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.list_changes import page as entries_page
from tollkeeper.engine.lists.entries import show_entry
from tollkeeper.engine.lists.imports import Imported
from tollkeeper.engine.lists.maxmind_file import BadDatabase
from tollkeeper.engine.lists.spec import EntryType, Lookup
from tollkeeper.engine.lists.values import read_instant, show_instant
from tollkeeper.engine.loading import SHIPPED
from tollkeeper.engine.open import now
from tollkeeper.engine.proof.coverage import percent
from tollkeeper.engine.proof.coverage_report import as_html
from tollkeeper.engine.proof.coverage_report import as_json as coverage_as_json
from tollkeeper.engine.proof.coverage_report import as_text as coverage_as_text
from tollkeeper.engine.proof.evaluation import evaluate_payment, explanation_lines
from tollkeeper.engine.proof.files import BrokenFileError, library_of
from tollkeeper.engine.proof.run import run_tests
from tollkeeper.engine.proof.starting import OccupiedError, start_folder
from tollkeeper.engine.proof.streams import StreamError
from tollkeeper.engine.reading import Picture, read_folder
from tollkeeper.engine.records import audit_page, decided_page
from tollkeeper.engine.reference import find_fields
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.changes import RolloutKey, Scope
from tollkeeper.engine.registry.errors import Refused
from tollkeeper.engine.registry.lists import find_list
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.settings import show_settings
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.registry.versions import find_lineage, find_version, kind_of
from tollkeeper.engine.settings import read_assignments
from tollkeeper.engine.shadow_report import ShadowReport, shadow_report
from tollkeeper.engine.violations import Violation
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import EventType, Program, Rule, Scorecard
from tollkeeper.grammar.render import Source, as_json, as_rich, as_sarif

OK, NO, USAGE = 0, 1, 2

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


def setting(name: str, help_: str, **more: Any) -> Callable[[Callable[..., Any]], Any]:
    """An option of `toll serve`, its `TOLL_…` variable and its default, from `Settings`."""
    return click.option(
        f"--{name.replace('_', '-')}",
        default=getattr(Settings(), name),
        envvar=f"TOLL_{name.upper()}",
        show_default=True,
        show_envvar=True,
        help=help_,
        **more,
    )


@main.command()
@data_option
@setting("host", "Address to listen on.")
@setting("port", "Port to listen on.")
@setting("waiting", "Requests that may wait for the disk at once; more get a 503.")
@setting("connections", "Connections that may be open at once; more get a 503.")
@setting("idle_seconds", "A connection without a whole request for so long is closed.")
@setting("drain_seconds", "How long requests in flight have once the service is told to stop.")
@setting("windows_cap", "Elements that an account's windows may hold.")
@setting("reach", "Where webhooks may go.", type=click.Choice(get_args(Reach)))
def serve(data: Path, **settings: Any) -> None:
    """Start the service."""
    with refusals(), progress_bar("filling windows") as progress:
        serve_folder(Settings(folder=data, **settings), progress)


@main.command()
@click.option("--port", default=8000, envvar="TOLL_PORT", show_default=True, show_envvar=True)
def demo(port: int) -> None:
    """Serve a throwaway account with sample traffic, and show what is decided."""
    with refusals():
        run_demo(port, show_demo)


def show_demo(told: Ready | Decided) -> None:
    if isinstance(told, Ready):
        out.print(
            f"Tollkeeper answers at [bold]{told.url}[/], its page is at /schema", highlight=False
        )
        out.print(f"account [bold]demo[/], key [bold]{told.key}[/]", highlight=False)
        out.print("\ntry it in another terminal:\n", highlight=False)
        print(curl_line(told))  # noqa: T201 - to be pasted, so never wrapped
        out.print("\nsample payments, as they are decided (Ctrl-C ends):\n", highlight=False)
        return
    sent = told.item.body["payment"]
    found = told.analyses["bot_behaviour"]
    rule = told.analyses["rule"]
    why = rule["condition"]["id"] if rule and rule["condition"] else ""
    colour = {"allow": "green", "challenge": "yellow", "deny": "red"}[found["action"]]
    amount = f"{sent.get('amount', 0):>9.2f} {sent['currency']}"
    out.print(
        f"{sent['timestamp'][11:19]}  {amount}  score {found['score']:.2f}  "
        f"[{colour}]{found['action']:<9}[/]  {why:<14} [dim]{told.item.kind.replace('_', ' ')}[/]",
        highlight=False,
    )


# Accounts and keys


@main.group()
def accounts() -> None:
    """Accounts: each has its own keys, rules, lists and payments."""


@accounts.command("create")
@click.argument("name")
@data_option
def create_account(name: str, data: Path) -> None:
    """Make an account."""
    done(data, CreateAccount(name))
    say(
        f"account [bold]{name}[/] is there; make a key with [cyan]toll keys create --account {name}[/]"
    )


@accounts.command("list")
@json_option
@data_option
def list_accounts(as_json_: bool, data: Path) -> None:
    """List the accounts."""

    async def ask(picture: Picture) -> list[Account]:
        return list(picture.state.accounts.values())

    found = ask_folder(data, ask)
    rows = [(each.name, show_instant(each.created_at)) for each in found]
    titles = ("name", "created_at")
    if as_json_:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    else:
        show_rows(titles, rows)


@accounts.command("show")
@click.argument("name")
@data_option
def show_account(name: str, data: Path) -> None:
    """Print the account's settings as JSON."""
    print_json(show_settings(ask_account(data, name).settings))


@accounts.command("set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="SETTING=VALUE...")
@data_option
def set_account(name: str, settings: Sequence[str], data: Path) -> None:
    """Change settings: `thresholds.deny=0.9`, `default_rule=checkout`, `time_zone=null`."""
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
    type=click.Choice(get_args(Scope)),
    default=("payments",),
    show_default=True,
    help="What the key may do; give it more than once for more scopes.",
)
@data_option
def create_key(account: str, scopes: tuple[Scope, ...], data: Path) -> None:
    """Make a key and print it alone; it is shown this once."""
    print(done(data, CreateKey(account, scopes)).key)  # noqa: T201 - the key alone, for a script


@keys.command("list")
@account_option
@json_option
@data_option
def list_keys(account: str, as_json_: bool, data: Path) -> None:
    """List the account's keys by the part of them that may be shown."""
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
    if as_json_:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    else:
        show_rows(titles, rows)


@keys.command("revoke")
@click.argument("key_id")
@account_option
@data_option
def revoke_key(key_id: str, account: str, data: Path) -> None:
    """Revoke the key whose shown part is KEY_ID."""
    done(data, RevokeKey(account, key_id))
    say(f"key [bold]{key_id}[/] is revoked")


# Rule files


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
@click.option("--sarif", is_flag=True, help="Print SARIF 2.1.0, for a code host.")
def check(paths: Sequence[Path], as_json_: bool, sarif: bool) -> None:
    """Check rule files; exit 1 when one has an error."""
    files = rule_files(paths)
    known = known_files(files)
    found: list[tuple[Source, tuple[Diagnostic, ...]]] = []
    for path in files:
        reading = read_file(path.read_bytes(), known)
        found.append((Source.of(str(path), reading.text), reading.diagnostics))
    errors = sum(each.severity == "error" for _, several in found for each in several)
    warnings = sum(len(several) for _, several in found) - errors
    if as_json_:
        print_json([item for source, several in found for item in as_json(source, several)])
    elif sarif:
        print_json(as_sarif(found))
    else:
        for source, several in found:
            if several:
                out.print(as_rich(source, several), soft_wrap=True)
        summary = f"{plural(len(files), 'file')}, {plural(errors, 'error')}, {plural(warnings, 'warning')}"
        say(summary, style="bold red" if errors else "bold green")
    sys.exit(NO if errors else OK)


@main.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--check", "check_only", is_flag=True, help="Change nothing; exit 1 when a file would change."
)
def fmt(paths: Sequence[Path], check_only: bool) -> None:
    """Bring rule files into the one layout; comments stay where they are."""
    changed = broken = 0
    for path in rule_files(paths):
        text = path.read_bytes().decode("utf-8", "replace")
        parsed = parse(text)
        if any(found.severity == "error" for found in parsed.diagnostics):
            out.print(as_rich(Source.of(str(path), text), parsed.diagnostics), soft_wrap=True)
            broken += 1
            continue
        formatted = format_file(text)
        if formatted != text:
            changed += 1
            if not check_only:
                path.write_text(formatted)
            say(escape(f"{'would change' if check_only else 'changed'} {path}"))
    sys.exit(NO if broken or (check_only and changed) else OK)


@main.command()
@click.argument("pattern", default="")
@json_option
def fields(pattern: str, as_json_: bool) -> None:
    """List what a rule can name: fields that hold PATTERN, or fit it (`device.*`)."""
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
    default=SHIPPED / "bot_behaviour.rule",
    show_default="the shipped one",
    help="The scorecard whose weights are estimated.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the new text here; standard output otherwise.",
)
def fit(history: Path, scorecard: Path, output: Path | None) -> None:
    """Estimate a scorecard's baseline and weights from labelled HISTORY (JSON Lines)."""
    try:
        from tollkeeper.engine.fit.fitting import FitError
        from tollkeeper.engine.fit.fitting import fit as fit_weights
    except ModuleNotFoundError:
        refuse("fitting needs the extra: pip install 'tollkeeper\\[fit]'")
    reading = readable(scorecard)
    if not isinstance(reading.program, Scorecard):
        refuse(escape(f"{scorecard} is not a scorecard"))
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
    with refusals():
        lineage = find_lineage(ask_account(data, account), kind, name)
    states = {lineage.shadow: "shadow", lineage.active: "active"}
    if lineage.rollout is not None:
        states[lineage.rollout.number] = f"rollout {lineage.rollout.percent}%"
    rows = [
        (
            version.number,
            states.get(version.number, ""),
            show_instant(version.stored_at),
            version.stored_by,
            version.checksum[:12],
        )
        for version in reversed(lineage.versions)
    ]
    titles = ("version", "state", "stored_at", "stored_by", "checksum")
    if as_json_:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    else:
        show_rows(titles, rows)


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
        "--kind", type=click.Choice(get_args(Decider)), default="rule", show_default=True
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
@click.option("--by", type=click.Choice(get_args(RolloutKey)), default="user", show_default=True)
@decider_option
@account_option
@data_option
def set_rollout(
    name: str, version: int, percent: int, by: str, kind: Any, account: str, data: Path
) -> None:
    """Give a part of the payments VERSION of NAME."""
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
    done(data, ClearRollout(account, kind, name))
    say(f"[bold]{name}[/] has no rollout any more")


# Lists and tables


@main.group()
def lists() -> None:
    """Lists and tables that rules look things up in."""


@lists.command("make")
@click.argument("name")
@click.option("--type", "type_", type=click.Choice(get_args(EntryType)), help="Of a list.")
@click.option("--by", type=click.Choice(get_args(Lookup)), help="How a table is looked up.")
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
    known = ask_account(data, account).lists
    views = [list_view(name, known[name].spec) for name in sorted(known)]
    if as_json_:
        print_json(views)
        return
    rows = [
        (view["name"], view.get("type") or f"table by {view['by']}", json_line(view.get("columns")))
        for view in views
    ]
    show_rows(("name", "type", "columns"), rows)


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
    show_rows(titles, rows)
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
    with refusals(), counter("entries") as count:
        exported = export_file(data, account, name, file, count)
    say(f"{plural(exported, 'entry')} of [bold]{name}[/]")


# Backtests


@main.command()
@click.argument("candidate")
@click.option("--since", default="30d", show_default=True, help="`30d`, `12h`, or a day.")
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
    since: str,
    account: str | None,
    histories: tuple[Path, ...],
    labels: Path | None,
    html: Path | None,
    markdown: bool,
    as_json_: bool,
    data: Path,
) -> None:
    """Try CANDIDATE, a file or NAME@VERSION, on stored history."""
    if bool(account) == bool(histories):
        raise click.UsageError("give either --account or --history")
    try:
        with refusals():
            program = candidate_program(candidate, account, data)
            moment = now()
            period = (read_since(since, moment), moment)
            known = {} if labels is None else read_labels(labels)
            with progress_bar("replaying") as progress:
                report = (
                    backtest_account(data, account, program, period, known, progress)
                    if account
                    else backtest_files(histories, program, period, known, progress)
                )
    except (GivenError, HistoryError, NotReplayableError, Refused) as error:
        refuse(escape(str(error)))
    if html is not None:
        html.write_text(backtest_page(report), encoding="utf-8")
    if as_json_:
        print_json(msgspec.to_builtins(report))
    elif markdown:
        print("\n".join(backtest_summary(report)))  # noqa: T201 - for a pull request
    else:
        out.print(draw_backtest(report))


def candidate_program(candidate: str, account: str | None, data: Path) -> Rule | Scorecard:
    """The program of a file, or of a stored version."""
    name, at, version = candidate.rpartition("@")
    if at and account and version.isdigit():
        stored = find_version(account_now(data, account), "rule", name, int(version))
        program: Program | None = decode_program(stored.program)
    else:
        path = Path(candidate)
        if not path.is_file():
            raise click.UsageError(f"there is no file `{candidate}`")
        program = readable(path).program
    if not isinstance(program, Rule | Scorecard):
        raise click.UsageError("a backtest takes a rule or a scorecard")
    return program


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
        {"name": name, "newest": len(lineage.versions), "active": lineage.active}
        for (kind, name), lineage in sorted(files.items())
        if kind == "event"
    ]
    if as_json_:
        print_json(rows)
        return
    show_rows(
        ("name", "newest", "active"),
        [[row["name"], row["newest"], row["active"] or ""] for row in rows],
    )


@events.command("deactivate")
@click.argument("name")
@account_option
@data_option
def deactivate_event_type(name: str, account: str, data: Path) -> None:
    """Take an event type out of force: its events are refused from now on."""
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

    async def ask(picture: Picture) -> Any:
        number = find_account(picture.state, account).number
        return await explain_payment(picture.journal, data, number, payment_id)

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
@click.option("--action", type=click.Choice(get_args(Action)))
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
        found = item["analyses"].get("bot_behaviour") or {}
        chosen = item["analyses"]["rule"]
        condition = (chosen["condition"] or {}).get("id", "") if chosen else ""
        verdict = found.get("action", "")
        score = f"{found['score']:.2f}" if found else "    "
        out.print(
            f"{item['at']}  [{ACTION_STYLES.get(verdict, 'dim')}]{verdict or 'no action':<9}[/]"
            f"  {score}  {escape(item['id'])}  [dim]{chosen['name'] if chosen else ''} {condition}[/]",
            highlight=False,
            soft_wrap=True,
        )
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
    show_rows(("at", "by", "action", "subject", "detail"), rows)
    continued(page.cursor)


@main.command()
@click.option("--user", required=True, help="The user's identifier, as payments name it.")
@account_option
@data_option
def erase(user: str, account: str, data: Path) -> None:
    """Erase one person's data for good: from payments, lists and windows."""
    count = done(data, EraseUser(account, user)).count
    say(f"the data of this user is erased from {plural(count or 0, 'payment')}")


# What the commands share


def ask_folder(data: Path, ask: Callable[[Picture], Awaitable[T]]) -> T:
    """What a command reads of the data folder; says why and exits 1 when it can't."""
    with refusals():
        return read_folder(data, ask)


def ask_account(data: Path, name: str) -> Account:
    async def ask(picture: Picture) -> Account:
        return find_account(picture.state, name)

    return ask_folder(data, ask)


def since_option(text: str | None) -> int:
    """The time in µs, 0 when none was given."""
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


def show_rows(
    titles: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> None:
    """A table for people."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title.replace("_", " "), no_wrap=not out.is_terminal)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    out.print(table, soft_wrap=True)


def json_line(value: Any) -> str:
    return "" if not value else json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def continued(cursor: int | None) -> None:
    if cursor is not None:
        say(f"there are more: --cursor {cursor}")


def done(
    data: Path, errand: Errand, progress: Callable[[float], None] = lambda _share: None
) -> Done:
    """What came of an errand; says why and exits 1 when nothing did."""
    with refusals():
        return answered(run_errand(data, errand, "toll", progress))


def answered(answer: Answer) -> Done:
    """What was done; says why and exits 1 when nothing was."""
    if isinstance(answer, NotDone):
        refuse_all(answer.errors)
    return answer


@contextmanager
def refusals() -> Iterator[None]:
    """What the data folder refuses, as one line for a person."""
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
