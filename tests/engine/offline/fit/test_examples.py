"""What an account's stored labels give to learn from, and what is set aside."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tollkeeper.cli import main
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.engine.offline.fit.examples import Examples, examples_of_account
from tollkeeper.engine.offline.outcomes import NothingToLearnError
from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.tests.engine.offline.backtest.shop import START, Shop, open_shop

SCORECARD = """\
scorecard bot_behaviour
  baseline 0.05
  list known: string
  let payments_of_user = count(payments by user.id over 1h)
  signal many adds 0.4 * payments_of_user
  signal known_user adds -1 when user.id in @known
"""
RULE = 'rule checkout condition large when amount > 900 and currency == "BRL" then deny'
MINUTE = 60_000_000
DAY = 1440 * MINUTE


def payment(number: int, user: str, amount: float) -> dict[str, object]:
    at = START + timedelta(minutes=number)
    return {
        "id": f"p-{number}",
        "type": "purchase",
        "currency": "BRL",
        "amount": amount,
        "timestamp": at.isoformat(),
        "method": {"type": "pix"},
        "merchant": {"id": "m-1"},
        "user": {"id": user},
        "analyze": {"bot_behaviour": True, "rule": {"name": "checkout"}},
    }


async def live(folder: Path) -> None:
    """Sixty people and bots; of the bots all are labelled, one denied payment never is."""
    async with open_shop(folder) as shop:
        await shop.publish(SCORECARD, "scorecard", "bot_behaviour")
        await shop.publish(RULE)
        for number in range(60):
            await pay(shop, number)
        shop.now += DAY
        for number in range(60):
            if number % 5 == 0:
                await tell(shop, f"p-{number}", "fraud")
        await tell(shop, "p-7", "unsure")


async def pay(shop: Shop, number: int) -> None:
    shop.now = to_microseconds(START) + number * MINUTE
    user = "bot" if number % 5 == 0 else f"u-{number}"
    await shop.create(payment(number, user, 950 if number == 3 else 20))


async def tell(shop: Shop, id_: str, verdict: str) -> None:
    label = Label("review", verdict, shop.now, "ana")  # type: ignore[arg-type]
    await set_label(shop.engine, shop.account, id_, label)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fit") / "data"
    asyncio.run(live(made))
    return made


def examples(folder: Path, mature: int) -> Examples:
    program = read_file(SCORECARD.encode(), KnownNames()).program
    assert program is not None
    return examples_of_account(folder, "shop", program, 0, mature, lambda _share: None)  # type: ignore[arg-type]


def test_denied_and_doubtful_payments_and_those_of_a_time_not_all_labelled_say_nothing(
    folder: Path,
) -> None:
    found = examples(folder, mature=10 * MINUTE)
    assert found.set_aside == {"denied": 1, "unsure": 1, "young": 10}
    assert len(found.labels) == 48
    assert found.labels.sum() == 10


def test_each_payment_is_measured_by_what_was_known_when_it_arrived(folder: Path) -> None:
    found = examples(folder, mature=0)
    of_bots = found.measures[found.labels > 0, 0]
    assert list(of_bots) == list(range(1, 13))
    assert set(found.measures[found.labels == 0, 0]) == {1}
    assert np.array_equal(found.measures[:, 0], found.values[:, 0])


def test_frauds_of_one_user_are_one_campaign_and_each_person_is_alone(folder: Path) -> None:
    found = examples(folder, mature=0)
    assert len(set(found.campaigns[found.labels > 0])) == 1
    assert len(set(found.campaigns)) == 1 + int((found.labels == 0).sum())


def test_without_a_mature_payment_nothing_is_learned(folder: Path) -> None:
    with pytest.raises(NothingToLearnError, match="are too young"):
        examples(folder, mature=DAY)


def test_the_command_writes_the_text_for_review(folder: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.rule"
    card.write_text(SCORECARD)
    asked = ["fit", "--account", "shop", "--data", str(folder), "--scorecard", str(card)]
    asked += ["--since", "2026-03-01", "--mature", "10m"]
    done = CliRunner().invoke(main, [*asked, "--curves", "--output", str(tmp_path / "new.rule")])
    assert done.exit_code == 0, done.output
    assert "baseline 0.114" in (tmp_path / "new.rule").read_text()
    assert (
        "set aside, as nobody can tell what they were: 1 denied, 1 unsure, 10 young" in done.stderr
    )
