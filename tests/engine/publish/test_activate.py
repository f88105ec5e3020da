"""What a publish does: one compilation for the version that it brings in, none for the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.programs import load
from tollkeeper.engine.publish.activate import Activate
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop

pytestmark = pytest.mark.anyio

RULE = "rule checkout\n  condition busy when count(payments by user.id over 1h) > %d then deny\n"
SIGN_IN = (
    "event sign_in\n  field user: string required\n  metric tries = count(events by user over 1h)\n"
)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The names and versions of what was compiled, in order."""
    found: list[tuple[str, int]] = []

    def noting(compile_: Callable[..., Any]) -> Callable[..., Any]:
        def noted(program: Any, version: int, *rest: Any) -> Any:
            found.append((program.name, version))
            return compile_(program, version, *rest)

        return noted

    for name in ("load_rule", "load_scorecard", "load_event_type"):
        monkeypatch.setattr(load, name, noting(getattr(load, name)))
    return found


async def publish_twice(shop: Shop) -> None:
    await shop.publish(SIGN_IN, "event", "sign_in")
    await shop.publish(RULE % 2)


async def test_a_publish_compiles_the_version_once(
    tmp_path: Path, compiled: list[tuple[str, int]]
) -> None:
    async with open_shop(tmp_path) as shop:
        compiled.clear()  # of what ships with a release
        await publish_twice(shop)
        assert compiled == [("sign_in", 1), (NAME, 1)]
        await shop.publish(RULE % 3)
        assert compiled[2:] == [(NAME, 2)]
        await shop.do(Activate("shop", "rule", NAME, 1))
        assert compiled[3:] == [(NAME, 1)]


async def test_a_publish_leaves_what_else_is_in_force_as_it_is(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await publish_twice(shop)
        before = shop.engine.active[shop.account].events["sign_in", 1]
        await shop.publish(RULE % 3)
        assert shop.engine.active[shop.account].events["sign_in", 1] is before
