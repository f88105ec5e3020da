from __future__ import annotations

import hashlib
from typing import get_args

import pytest

from tollkeeper.engine.registry import keys
from tollkeeper.engine.registry.accounts import create_account
from tollkeeper.engine.registry.changes import encode_change
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.keys import authenticate, create_key, revoke_key
from tollkeeper.engine.registry.scopes import BUNDLES, SCOPES, Bundle, NarrowScope

NOW = 1_789_000_000_000_000


def test_a_key_opens_its_own_account_only(registry):
    number, created = create_account(registry.state, "market")
    registry.record(created, account=number)
    ours, change = create_key(registry.account, ["payments"])
    registry.record(change)
    theirs, change = create_key(registry.state.accounts[number], ["payments"])
    registry.record(change, account=number)
    assert authenticate(registry.state, ours, NOW).account == 1
    assert authenticate(registry.state, theirs, NOW).account == number


def test_a_key_has_256_bits_that_are_kept_nowhere(registry):
    key, change = create_key(registry.account, ["admin"])
    body = encode_change("toll keys create", change)
    assert key.startswith("toll_")
    assert len(key) - len(change.id) >= 43
    assert change.hash == hashlib.sha256(key.encode()).digest()
    assert key.encode() not in body
    assert key[len(change.id) :].encode() not in body


def test_two_keys_are_never_the_same(registry):
    assert len({create_key(registry.account, ["payments"])[0] for _ in range(100)}) == 100


@pytest.mark.parametrize("presented", ["", "toll_", "toll_nobody", "é", "\ud800", "x" * 10_000])
def test_what_is_no_key_opens_nothing(registry, presented):
    registry.record(create_key(registry.account, ["admin"])[1])
    assert authenticate(registry.state, presented, NOW) is None


def test_a_revoked_key_opens_nothing_and_stays_listed(registry):
    key, change = create_key(registry.account, ["payments"])
    registry.record(change)
    revoked = registry.record(revoke_key(registry.account, change.id))
    assert authenticate(registry.state, key, NOW) is None
    assert registry.account.keys[change.id].revoked_at == revoked.at


def test_a_key_is_revoked_once(registry):
    change = create_key(registry.account, ["payments"])[1]
    registry.record(change)
    registry.record(revoke_key(registry.account, change.id))
    with pytest.raises(Conflict, match="revoked already"):
        revoke_key(registry.account, change.id)


def test_an_unknown_key_is_not_found(registry):
    with pytest.raises(NotFound, match="there is no key `toll_nobody`"):
        revoke_key(registry.account, "toll_nobody")


def test_a_key_may_do_what_its_scopes_and_bundles_say_and_nothing_else(registry):
    allowed = {}
    for scopes in (["payments:write"], ["rules", "events:write"], ["payments"], ["admin"]):
        key, change = create_key(registry.account, scopes)
        registry.record(change)
        allowed[scopes[0]] = authenticate(registry.state, key, NOW).granted
    assert allowed == {
        "payments:write": {"payments:write"},
        "rules": BUNDLES["rules"] | {"events:write"},
        "payments": BUNDLES["payments"],
        "admin": set(get_args(NarrowScope)),
    }


def test_every_scope_is_described():
    assert set(SCOPES) == set(get_args(NarrowScope))
    assert set(BUNDLES) == set(get_args(Bundle))


def test_a_key_is_good_until_it_expires(registry):
    key, change = create_key(registry.account, ["payments"], "till", NOW)
    registry.record(change)
    assert authenticate(registry.state, key, NOW - 1).name == "till"
    assert authenticate(registry.state, key, NOW) is None


@pytest.mark.parametrize("name", ["x" * 65, "two\nlines"])
def test_a_name_is_short_and_printable(registry, name):
    with pytest.raises(Invalid) as refused:
        create_key(registry.account, ["payments"], name)
    assert [v.field for v in refused.value.violations] == ["key.name"]


@pytest.mark.parametrize("scopes", [[], ["payment"], ["payments", "root"]])
def test_an_unknown_scope_or_none_is_refused(registry, scopes):
    with pytest.raises(Invalid) as refused:
        create_key(registry.account, scopes)
    assert [v.field for v in refused.value.violations] == ["key.scopes"]


def test_an_account_has_so_many_keys_that_are_not_revoked_and_no_more(registry, monkeypatch):
    monkeypatch.setattr(keys, "MAX_KEYS", 1)
    _, change = create_key(registry.account, ["payments"])
    registry.record(change)
    with pytest.raises(Conflict, match="at most 1 keys"):
        create_key(registry.account, ["payments"])
    registry.record(revoke_key(registry.account, change.id))
    assert create_key(registry.account, ["payments"])
