"""Commands on a folder that a service holds, and on one that nobody does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import httpx
import msgspec
import pytest

from tollkeeper.cli import main
from tollkeeper.engine.decision import Action
from tollkeeper.engine.journal.damage import Policy
from tollkeeper.engine.lists.spec import EntryType, Lookup
from tollkeeper.engine.monitors.webhook_reach import Reach
from tollkeeper.engine.offline.prove.questions import ProofBasis
from tollkeeper.engine.offline.suggest.report import SuggestedAction
from tollkeeper.engine.registry.changes import NoticeKind, ProgramKind, RolloutKey
from tollkeeper.engine.registry.roles import Role
from tollkeeper.engine.registry.scopes import KeyScope
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.search.find import Sort
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving, toll

RULE = """rule checkout
  let uses = count(payments by user.id over 1h)
  condition busy when uses > 2 then deny
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "checkout"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Running]]:
    """A folder and the service that holds it."""
    folder = tmp_path_factory.mktemp("served") / "data"
    with serving(folder) as service:
        yield folder, service


def test_a_key_made_while_the_service_runs_works_at_once(served: tuple[Path, Running]) -> None:
    folder, service = served
    answer = httpx.post(
        f"{service.url}/v1/payments",
        json=payment(),
        headers={"authorization": f"Bearer {new_key(folder, 'payments')}"},
        timeout=PATIENCE_S,
    )
    assert answer.status_code == 201


def test_an_account_is_suspended_and_deleted_while_the_service_runs(
    served: tuple[Path, Running],
) -> None:
    folder, service = served
    toll(folder, "accounts", "create", "night")
    key = toll(folder, "keys", "create", "--account", "night").stdout.strip()

    def status() -> int:
        headers = {"authorization": f"Bearer {key}"}
        url = f"{service.url}/v1/payments"
        return httpx.post(url, json=payment(), headers=headers, timeout=PATIENCE_S).status_code

    assert status() == 201
    in_use = toll(folder, "accounts", "delete", "night")
    assert (in_use.returncode, "suspend it first" in in_use.stderr) == (1, True)
    for command, expected in (("suspend", 403), ("resume", 201), ("suspend", 403), ("delete", 401)):
        assert toll(folder, "accounts", command, "night").returncode == 0
        assert status() == expected
    listed = msgspec.json.decode(toll(folder, "accounts", "list", "--json").stdout)
    assert [each["state"] for each in listed if each["name"] == "night"] == ["deleted"]


def test_a_rule_published_while_the_service_runs_is_filled_from_history(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    file = tmp_path / "checkout.rule"
    file.write_text(RULE)
    headers = {"authorization": f"Bearer {new_key(folder, 'payments')}"}
    with (
        serving(folder) as service,
        httpx.Client(base_url=service.url, headers=headers, timeout=PATIENCE_S) as client,
    ):
        for _ in range(2):
            client.post("/v1/payments", json=payment())
        published = toll(folder, "publish", str(file), "--account", "shop")
        assert published.returncode == 0, published.stderr
        third = client.post("/v1/payments", json=payment(analyze=ASKED)).json()["payment"]
        assert third["analyses"]["rule"]["condition"]["id"] == "busy"
    with serving(folder) as service:
        after_restart = httpx.post(
            f"{service.url}/v1/payments",
            json=payment(analyze=ASKED),
            headers=headers,
            timeout=PATIENCE_S,
        )
        assert after_restart.json()["payment"]["analyses"]["rule"]["condition"]["id"] == "busy"


def test_a_second_service_on_the_same_folder_is_refused(served: tuple[Path, Running]) -> None:
    folder, _ = served
    second = toll(folder, "serve", "--port", "1")
    assert second.returncode == 1
    assert "in use by `toll serve`" in second.stderr


def test_a_file_whose_own_test_fails_is_not_published(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "shop.rule"
    new_key(data, "rules")
    file.write_text(
        "rule shop\n  condition c when score > 0.5 then deny\n"
        '  test "a high score is challenged"\n    given score = 0.9\n    expect challenge\n'
    )
    ended = toll(data, "publish", str(file), "--account", "shop")
    assert ended.returncode == 1
    assert "error[failing-test]" in ended.stderr
    assert "nothing is published" in ended.stderr
    assert "active" in toll(data, "publish", str(file), "--account", "shop", "--untested").stderr


def test_a_file_with_errors_is_not_published(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    new_key(folder, "rules")
    file = tmp_path / "broken.rule"
    file.write_text("rule broken\n  condition a when amont > 1 then deny\n")
    refused = toll(folder, "publish", str(file), "--account", "shop")
    assert refused.returncode == 1
    assert "did you mean `amount`?" in refused.stderr


OF_THE_SERVICE = {
    *("crawleruseragents", "httpcore", "httpx", "iso18245", "litestar", "maxminddb", "pycountry"),
    *("prometheus_client", "pytest", "sqlite_utils", "structlog", "ua_parser", "uvicorn", "yaml"),
}
TELL = """
import atexit, sys
atexit.register(lambda: print("loaded", *sorted(sys.modules)))
sys.argv[0] = "toll"
from tollkeeper.cli import main
main()
"""


@pytest.mark.parametrize("command", ["--help", "check", "fmt --check", "fields amount"])
def test_what_authors_run_all_day_loads_nothing_of_the_service(
    command: str, tmp_path: Path
) -> None:
    file = tmp_path / "checkout.rule"
    file.write_text(RULE)
    arguments = [*command.split(), *([str(file)] if command in ("check", "fmt --check") else [])]
    done = subprocess.run(
        [sys.executable, "-c", TELL, *arguments], capture_output=True, text=True, check=False
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "tollkeeper.cli" in loaded, done.stderr
    assert not loaded & OF_THE_SERVICE


def test_the_choices_of_options_are_those_of_the_code() -> None:
    known = [
        Action,
        ProofBasis,
        Decider,
        EntryType,
        ProgramKind,
        Lookup,
        Policy,
        Reach,
        RolloutKey,
        NoticeKind,
        KeyScope,
        Role,
        SuggestedAction,
        Sort,
    ]
    offered = {
        frozenset(parameter.type.choices)
        for command in commands(main)
        for parameter in command.params
        if isinstance(parameter.type, click.Choice)
    }
    assert offered == {frozenset(get_args(each)) for each in known}


def commands(of: Any) -> Iterator[click.Command]:
    yield of
    if isinstance(of, click.Group):
        context = click.Context(of)
        for name in of.list_commands(context):
            yield from commands(of.get_command(context, name))


def test_a_user_is_let_in_by_a_link_while_the_service_runs_and_out_again(
    served: tuple[Path, Running],
) -> None:
    folder, service = served
    new_key(folder, "payments")
    account = ("--account", "shop")
    assert toll(folder, "users", "set", "ana", "--role", "lead", *account).returncode == 0
    link = toll(folder, "users", "link", "ana", "--address", service.url, *account).stdout.strip()
    code = link.removeprefix(f"{service.url}/console/sign-in?code=")
    sent = {"session": {"code": code}}
    answer = httpx.post(f"{service.url}/v1/sessions", json=sent, timeout=PATIENCE_S)
    headers = {"authorization": f"Bearer {answer.json()['session']['token']}"}

    def who() -> httpx.Response:
        url = f"{service.url}/v1/session"
        return httpx.get(url, headers=headers, timeout=PATIENCE_S)

    assert who().json()["session"]["role"] == "lead"
    listed = msgspec.json.decode(toll(folder, "users", "list", "--json", *account).stdout)
    # Another test may have let others in.
    assert ("ana", "lead") in [(each["name"], each["role"]) for each in listed]
    assert toll(folder, "users", "remove", "ana", *account).returncode == 0
    assert who().status_code == 401


def test_a_proposal_is_made_and_approved_by_two_people_while_the_service_runs(
    served: tuple[Path, Running], tmp_path: Path
) -> None:
    folder, _ = served
    new_key(folder, "payments")
    account = ("--account", "shop")
    file = tmp_path / "night.rule"
    for limit in (2, 3):
        file.write_text(f"rule night\n  condition busy when amount > {limit} then deny\n")
        draft = ("--draft",) if limit == 3 else ()
        assert toll(folder, "publish", str(file), *draft, *account).returncode == 0
    for name in ("eva", "rui"):
        toll(folder, "users", "set", name, "--role", "lead", *account)
    assert toll(folder, "accounts", "set", "shop", "approvals.publish=true").returncode == 0
    refused = toll(folder, "activate", "night", "2", *account)
    assert (refused.returncode, "propose it" in refused.stderr) == (1, True)
    made = ("proposals", "make", "night", "2", "--note", "less", "--author", "eva", *account)
    for _ in range(2):
        assert toll(folder, *made).returncode == 0
    own = toll(folder, "proposals", "approve", "1", "--author", "eva", *account)
    assert (own.returncode, "another person" in own.stderr) == (1, True)
    alone = ("proposals", "alone", "1", "--reason", "an attack", "--author", "eva", *account)
    assert toll(folder, *alone).returncode == 1
    assert toll(folder, *alone, "--until", "1h").returncode == 0
    assert toll(folder, "proposals", "approve", "1", "--author", "rui", *account).returncode == 0
    no = ("proposals", "refuse", "2", "--reason", "done already", "--author", "rui", *account)
    assert toll(folder, *no).returncode == 0
    listed = msgspec.json.decode(toll(folder, "proposals", "list", "--json", *account).stdout)
    assert [each["state"] for each in listed] == ["refused", "approved"]


def test_entries_of_a_list_are_proposed_where_another_person_must_approve_them(
    served: tuple[Path, Running], tmp_path: Path
) -> None:
    folder, _ = served
    account = ("--account", "bank")
    assert toll(folder, "accounts", "create", "bank").returncode == 0
    assert toll(folder, "lists", "make", "blocked", "--type", "string", *account).returncode == 0
    for name in ("eva", "rui"):
        toll(folder, "users", "set", name, "--role", "lead", *account)
    assert toll(folder, "accounts", "set", "bank", "approvals.lists=true").returncode == 0
    file = tmp_path / "blocked.csv"
    file.write_text("value\nd-9\n")
    for command in (("add", "blocked", "d-1"), ("import", "blocked", str(file))):
        refused = toll(folder, "lists", *command, *account)
        assert (refused.returncode, "propose it" in refused.stderr) == (1, True)
    wanted = ("proposals", "entries", "blocked", "d-1", "--note", "card testing")
    made = toll(folder, *wanted, "--author", "eva", *account)
    assert made.returncode == 0, made.stderr
    assert "1 entry of blocked waits for another person" in made.stderr + made.stdout
    assert toll(folder, "proposals", "approve", "1", "--author", "rui", *account).returncode == 0
    shown = toll(folder, "lists", "show", "blocked", "--value", "d-1", "--json", *account).stdout
    (entry,) = msgspec.json.decode(shown)["entries"]
    assert (entry["value"], entry["note"], entry["by"]) == ("d-1", "card testing", "eva")
    gone = toll(folder, *wanted, "--remove", "--author", "eva", *account)
    assert gone.returncode == 0, gone.stderr
    listed = msgspec.json.decode(toll(folder, "proposals", "list", "--json", *account).stdout)
    assert [(each["state"], each["subject"]) for each in listed] == [
        ("waiting", "list blocked"),
        ("approved", "list blocked"),
    ]
