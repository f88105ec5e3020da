"""What a publish does: one compilation for the version that it brings in, none for the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.programs import load
from tollkeeper.engine.publish.activate import Activate, Deactivate, store
from tollkeeper.engine.publish.change_lists import MakeList
from tollkeeper.engine.publish.prepare import prepare_version
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.engine.registry.errors import Conflict, Forbidden
from tollkeeper.engine.runtime import in_this_process
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


async def test_what_is_prepared_holds_up_nothing_else_of_the_account(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE % 2)
        await shop.publish(RULE % 3)
        await shop.publish(RULE.replace("checkout", "gate") % 2, name="gate")
        prepares, prepared = asyncio.Event(), asyncio.Event()

        async def run_in_worker(account: int, work: Any, /, *given: Any, **named: Any) -> Any:
            if work is prepare_version:
                prepares.set()
                await prepared.wait()
            return await in_this_process(account, work, *given, **named)

        shop.engine.run_in_worker = run_in_worker
        going_back = asyncio.create_task(shop.do(Activate("shop", "rule", NAME, 1)))
        await prepares.wait()
        await shop.do(Deactivate("shop", "rule", "gate"))
        assert not going_back.done()
        prepared.set()
        await going_back
        files = shop.engine.state.accounts[shop.account].files
        assert (files["rule", NAME].active, files["rule", "gate"].active) == (1, None)


async def test_a_version_is_refused_that_may_no_longer_be_active_once_it_is_prepared(
    tmp_path: Path,
) -> None:
    async with open_shop(tmp_path) as shop:
        await shop.publish(RULE % 2)
        await shop.publish(RULE % 3)

        async def run_in_worker(account: int, work: Any, /, *given: Any, **named: Any) -> Any:
            if work is prepare_version:
                await shop.do(ChangeSettings("shop", {"approvals": {"publish": True}}))
            return await in_this_process(account, work, *given, **named)

        shop.engine.run_in_worker = run_in_worker
        with pytest.raises(Forbidden):
            await shop.do(Activate("shop", "rule", NAME, 1))
        assert shop.engine.state.accounts[shop.account].files["rule", NAME].active == 2


async def test_a_text_whose_names_change_again_and_again_is_refused_and_not_read_for_ever(
    tmp_path: Path,
) -> None:
    async with open_shop(tmp_path) as shop:
        made: list[str] = []

        async def run_in_worker(account: int, work: Any, /, *given: Any, **named: Any) -> Any:
            made.append(f"list{len(made)}")
            await shop.do(MakeList("shop", made[-1], {"type": "string"}))
            return await in_this_process(account, work, *given, **named)

        shop.engine.run_in_worker = run_in_worker
        with pytest.raises(Conflict, match="store it again"):
            await store(shop.engine, shop.account, "test", "rule", NAME, (RULE % 2).encode())
