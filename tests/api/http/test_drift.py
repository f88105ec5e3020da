"""Scores that move and scores that don't come true are told by week, over HTTP and by command."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.search.drift import SHIFTED, population_stability
from tollkeeper.tests.api.http.service import NOW, Service, payment
from tollkeeper.tests.service.process import toll

SCORECARD = """scorecard bot_behaviour
  baseline 0.5
  signal sure adds 3.0 when user.id == "bot"
  signal person adds -3.0 when user.id == "person"
"""
WEEK = 7 * 86_400_000_000
WEEKS = 6
EACH = 10


@pytest.fixture
async def shop(service: Service) -> Service:
    """Ten people a week, of whom the scores say 0.05; in the last week eight of the ten are bots,
    half of them labelled so, and one of the people, too."""
    stored = await service.client.post(
        "/v1/scorecards/bot_behaviour/versions?publish=true", content=SCORECARD
    )
    assert stored.status_code == 201
    for week in range(WEEKS):
        at = NOW + week * WEEK
        service.engine.clock = lambda at=at: at
        stamp = datetime.fromtimestamp(at / 1e6, UTC).isoformat()
        for number in range(EACH):
            bot = week == WEEKS - 1 and number < 8
            user = {"id": "bot" if bot else "person"}
            body = payment(id=f"p-{week}-{number}", user=user, timestamp=stamp)
            answer = await service.client.post("/v1/payments", json=body)
            assert answer.status_code == 201, answer.text
    for number in (0, 1, 2, 3, 9):
        path = f"/v1/payments/p-{WEEKS - 1}-{number}/labels/review"
        assert (await service.client.put(path, json={"label": "fraud"})).status_code == 200
    at += 1
    service.engine.clock = lambda: at
    return service


@pytest.mark.anyio
async def test_the_week_in_which_scores_moved_is_told_with_what_came_true(shop: Service) -> None:
    answer = await shop.client.get("/v1/scores/drift?since=21d")
    assert answer.status_code == 200, answer.text
    weeks = answer.json()["weeks"]
    assert [each["payments"] for each in weeks] == [EACH] * 3
    assert [each["shifted"] for each in weeks] == [False, False, True]
    assert weeks[1]["shift"] < 0.1
    assert (weeks[2]["known"], weeks[2]["frauds"]) == (5, 5)
    assert weeks[2]["expected"] == pytest.approx(4 * 0.95 + 0.05, abs=0.051)


@pytest.mark.anyio
async def test_without_payments_before_nothing_has_moved(shop: Service) -> None:
    path = "/v1/scores/drift?merchant=nobody"
    weeks = (await shop.client.get(path)).json()["weeks"]
    assert len(weeks) == 8
    assert {(each["payments"], each["shift"], each["shifted"]) for each in weeks} == {
        (0, None, False)
    }


@pytest.mark.anyio
async def test_the_command_tells_the_weeks(shop: Service) -> None:
    await shop.engine.journal.flush()
    drawn = toll(shop.folder, "drift", "--account", "shop", "--since", "2026-01-01T00:00:00Z")
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.splitlines()[0].split() == [
        *("week", "from", "payments", "shift", "expected", "frauds"),
    ]


counts = st.lists(st.integers(0, 1000), min_size=101, max_size=101)


@given(counts, counts)
def test_an_index_is_always_at_least_nothing_and_nothing_for_the_same(
    before: list[int], after: list[int]
) -> None:
    found = population_stability(before, after)
    assert (found is None) is (not sum(before) or not sum(after))
    assert found is None or found >= 0
    same = population_stability(before, before)
    assert same is None or same == pytest.approx(0)


def test_a_tenth_that_doubles_is_not_yet_a_shift_and_a_half_that_moves_is() -> None:
    before = [100] * 10 + [0] * 91
    little = [200] + [89] * 9 + [0] * 91
    much = [20] * 5 + [180] * 5 + [0] * 91
    assert (population_stability(before, little) or 0) < SHIFTED / 2
    assert (population_stability(before, much) or 0) > SHIFTED
