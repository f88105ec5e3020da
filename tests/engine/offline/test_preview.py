"""`toll publish --preview`: what a file would change, and nothing done before the author says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tollkeeper.cli import main
from tollkeeper.engine.offline import preview
from tollkeeper.tests.engine.offline.backtest.shop import open_shop
from tollkeeper.tests.engine.offline.prove.forked import forked_solver

__all__ = ["forked_solver"]

ACTIVE = """rule checkout
  condition large when currency == "EUR" and amount > 100.00 then challenge
"""
CANDIDATE = ACTIVE.replace("> 100.00 then challenge", "> 50.00 then deny")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop that has decided three payments by version 1."""
    made = tmp_path_factory.mktemp("preview") / "data"

    async def trade() -> None:
        async with open_shop(made) as shop:
            await shop.publish(ACTIVE)
            for number, amount in enumerate((20.0, 70.0, 200.0)):
                await shop.create(purchase(number, amount))

    asyncio.run(trade())
    return made


def purchase(number: int, amount: float) -> dict[str, Any]:
    return {
        "id": f"p-{number}",
        "type": "purchase",
        "currency": "EUR",
        "amount": amount,
        "method": {"type": "card"},
        "merchant": {"id": "m-1"},
        "analyze": {"bot_behaviour": True, "rule": {"name": "checkout"}},
    }


def publish(folder: Path, text: str, answer: str, *options: str) -> Result:
    file = folder.parent / "checkout.rule"
    file.write_text(text)
    given = ["publish", str(file), "--account", "shop", "--data", str(folder), "--preview"]
    return CliRunner().invoke(main, [*given, "--since", "2026-03-01", *options], input=answer)


def test_a_preview_tells_the_change_of_meaning_and_of_decisions_and_asks(folder: Path) -> None:
    declined = publish(folder, CANDIDATE, "n\n")
    assert declined.exit_code == 1
    assert "nothing is published" in declined.stderr
    told = [" ".join(line.split()) for line in declined.stdout.splitlines()]
    assert told[:3] == [
        "against version 1:",
        "changed condition `large` threshold: 100.00 → 50.00",
        "changed condition `large` action: challenge → deny",
    ]
    assert told[3:10] == [
        "✗ checkout: the versions of `checkout` decide this payment differently",
        'test "counterexample"',
        'given currency = "EUR", amount = 100.00, score = 0.00',
        "expect deny by large",
        "before: allow, after: deny by large",
        "✓ checkout: `large` meets more than before, such as",
        'test "counterexample"',
    ]
    assert any("2 (66.67%) would change" in line for line in told)
    assert "challenge by large deny by large 1 200.00 EUR" in told
    assert "p-1 2026-03-02T08:00:00+00:00 allow deny by large 70.00 EUR" in told


def test_a_preview_says_that_both_decide_alike_only_as_it_is_proved(folder: Path) -> None:
    text = ACTIVE.replace("amount > 100.00", "not (amount <= 100.00)")
    assert "✓ checkout: both versions of `checkout` decide every payment alike" in (
        " ".join(line.split()) for line in publish(folder, text, "n\n").stdout.splitlines()
    )


def test_a_preview_without_the_solver_says_so_in_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "find_spec", lambda _name: None)
    told = publish(folder, CANDIDATE, "n\n").stdout
    assert told.count("what that means is not proved: it needs the extra `prove`") == 1


def test_no_answer_is_no(folder: Path) -> None:
    assert publish(folder, CANDIDATE, "").exit_code == 1


def test_a_failing_test_ends_it_before_anything_is_shown(folder: Path) -> None:
    text = f'{CANDIDATE}  test "t" given amount = 1.00, currency = "EUR" expect deny\n'
    ended = publish(folder, text, "y\n")
    assert (ended.exit_code, ended.stdout) == (1, "")


def test_yes_publishes_it(folder: Path) -> None:
    done = publish(folder, CANDIDATE, "y\n")
    assert done.exit_code == 0, done.stderr
    assert "checkout version 2 is active" in done.stderr
    assert "it says the same as version 2" in publish(folder, CANDIDATE, "n\n").stdout
