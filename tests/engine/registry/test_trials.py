from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.programs.active import pick_version
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.state import Account, Lineage, Rollout, Version
from tollkeeper.engine.registry.trials import (
    clear_rollout,
    clear_shadow,
    set_rollout,
    set_shadow,
    shadow_version,
)
from tollkeeper.engine.registry.versions import activate, deactivate, encode_file, store_version


@pytest.fixture
def published(registry, rule):
    """`checkout` with versions 1 and 2, version 1 published."""
    for text in ("first", "second"):
        registry.record(store_version(registry.account, encode_file(rule()), text, {}))
    registry.record(activate(registry.account, "rule", "checkout", 1))
    return registry


def with_rollout(percent: int, number: int = 7) -> Account:
    versions = tuple(
        Version("rule", "checkout", n, "", {}, "", 1, b"", 0, "toll publish") for n in (1, 2)
    )
    lineage = Lineage(versions, active=1, rollout=Rollout(2, percent, "user"))
    return Account(number, "shop", 0, files={("rule", "checkout"): lineage})


def pick(account: Account, key: str | None) -> int:
    return pick_version(account, "rule", "checkout", 0, {"user": key}.get).number


def test_a_shadow_never_is_the_version_that_decides(published):
    published.record(set_shadow(published.account, "rule", "checkout", 2))
    assert shadow_version(published.account, "rule", "checkout").number == 2
    assert pick(published.account, "ana") == 1


def test_a_shadow_can_be_taken_away(published):
    published.record(set_shadow(published.account, "rule", "checkout", 2))
    published.record(clear_shadow(published.account, "rule", "checkout"))
    assert shadow_version(published.account, "rule", "checkout") is None
    with pytest.raises(NotFound, match="has no shadow"):
        clear_shadow(published.account, "rule", "checkout")


def test_an_unknown_name_has_neither_shadow_nor_version(published):
    assert shadow_version(published.account, "rule", "mobile") is None
    assert pick_version(published.account, "rule", "mobile", 0, lambda _: "ana") is None


@given(key=st.text(), low=st.integers(0, 100), high=st.integers(0, 100))
def test_growing_the_percentage_never_moves_a_key_back(key, low, high):
    low, high = sorted((low, high))
    if pick(with_rollout(low), key) == 2:
        assert pick(with_rollout(high), key) == 2


@given(key=st.text(), percent=st.integers(0, 100))
def test_a_key_always_gets_the_same_version(key, percent):
    account = with_rollout(percent)
    assert pick(account, key) == pick(account, key)


@given(key=st.text())
def test_none_is_nobody_and_a_hundred_is_everybody(key):
    assert pick(with_rollout(0), key) == 1
    assert pick(with_rollout(100), key) == 2


def test_the_share_of_keys_is_about_the_percentage():
    account = with_rollout(30)
    moved = sum(pick(account, f"user-{n}") == 2 for n in range(10_000))
    assert 2_800 < moved < 3_200


def test_two_accounts_choose_apart():
    one, other = with_rollout(50, number=1), with_rollout(50, number=2)
    same = sum(pick(one, f"user-{n}") == pick(other, f"user-{n}") for n in range(10_000))
    assert 4_700 < same < 5_300


def test_a_payment_without_the_key_gets_the_active_version():
    assert pick(with_rollout(100), None) == 1


def test_publishing_and_unpublishing_end_a_rollout(published):
    published.record(set_rollout(published.account, "rule", "checkout", 2, 100, "user"))
    assert pick(published.account, "ana") == 2
    published.record(activate(published.account, "rule", "checkout", 1))
    assert pick(published.account, "ana") == 1
    published.record(set_rollout(published.account, "rule", "checkout", 2, 100, "user"))
    published.record(deactivate(published.account, "rule", "checkout"))
    assert pick_version(published.account, "rule", "checkout", 0, lambda _: "ana") is None


def test_a_rollout_can_be_taken_away(published):
    published.record(set_rollout(published.account, "rule", "checkout", 2, 100, "user"))
    published.record(clear_rollout(published.account, "rule", "checkout"))
    assert pick(published.account, "ana") == 1
    with pytest.raises(NotFound, match="has no rollout"):
        clear_rollout(published.account, "rule", "checkout")


def test_a_rollout_needs_a_percentage_a_key_a_version_and_a_published_name(published):
    with pytest.raises(Invalid) as refused:
        set_rollout(published.account, "rule", "checkout", 2, 101, "merchant")
    assert [v.field for v in refused.value.violations] == ["percent", "by"]
    with pytest.raises(NotFound):
        set_rollout(published.account, "rule", "checkout", 3, 10, "user")
    published.record(deactivate(published.account, "rule", "checkout"))
    with pytest.raises(Conflict, match="is not published"):
        set_rollout(published.account, "rule", "checkout", 2, 10, "user")
