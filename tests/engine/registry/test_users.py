"""Users of an account: their names, their roles, and what a role may do."""

from __future__ import annotations

import pytest

from tollkeeper.engine.registry import users
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.keys import create_key
from tollkeeper.engine.registry.roles import ROLES
from tollkeeper.engine.registry.scopes import SCOPES, granted_scopes


def test_a_user_has_the_role_that_was_given_last(registry):
    registry.record(users.set_user(registry.account, "ana@shop.example", "analyst"))
    registry.record(users.set_user(registry.account, "ana@shop.example", "lead"))
    assert registry.account.users["ana@shop.example"].role == "lead"
    assert users.set_user(registry.account, "ana@shop.example", "lead") is None


def test_a_user_who_was_removed_is_gone(registry):
    registry.record(users.set_user(registry.account, "ana", "viewer"))
    registry.record(users.remove_user(registry.account, "ana"))
    assert registry.account.users == {}
    with pytest.raises(NotFound):
        users.remove_user(registry.account, "ana")


@pytest.mark.parametrize(
    "name", ["", "toll_abcdefgh", "a b", "ana@", "@shop", "<b>", "=1+1", "a" * 65, "a\n"]
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(registry, name):
    with pytest.raises(Invalid) as refused:
        users.set_user(registry.account, name, "viewer")
    assert [each.field for each in refused.value.violations] == ["user.name"]


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are(registry):
    with pytest.raises(Invalid, match="`viewer`, `analyst`"):
        users.set_user(registry.account, "ana", "boss")


def test_an_account_has_so_many_users_and_no_more(registry, monkeypatch):
    monkeypatch.setattr(users, "MAX_USERS", 1)
    registry.record(users.set_user(registry.account, "ana", "viewer"))
    assert users.set_user(registry.account, "ana", "lead") is not None
    with pytest.raises(Conflict):
        users.set_user(registry.account, "rui", "viewer")


def test_who_manages_users_publishes_nothing_and_who_publishes_manages_none():
    for role, scopes in ROLES.items():
        assert scopes <= SCOPES.keys()
        assert not {"users:write", "rules:publish"} <= scopes, role
        assert "payments:write" not in scopes


def test_a_key_is_owned_by_a_user_or_by_nobody(registry):
    with pytest.raises(Invalid, match="no user `ana`"):
        create_key(registry.account, ["rules"], owner="ana")
    registry.record(users.set_user(registry.account, "ana", "lead"))
    made = create_key(registry.account, ["rules"], owner="ana")[1]
    registry.record(made)
    assert users.person_of(registry.account, made.id) == "ana"
    other = create_key(registry.account, ["rules"])[1]
    registry.record(other)
    assert users.person_of(registry.account, other.id) == other.id
    assert users.person_of(registry.account, "rui") == "rui"


def test_a_key_sees_the_merchants_of_its_owner_whenever_they_were_said(registry):
    def told(name):
        (key,) = (each for each in registry.account.keys.values() if each.name == name)
        assert registry.state.keys[key.hash] == key
        return key.merchants, key.granted

    registry.record(users.set_user(registry.account, "ana", "lead"))
    scopes = ["payments:read", "rules:write"]
    registry.record(create_key(registry.account, scopes, "before", owner="ana")[1])
    registry.record(create_key(registry.account, scopes, "nobody's")[1])
    registry.record(users.set_user(registry.account, "ana", "lead", ("m-1",)))
    registry.record(create_key(registry.account, scopes, "after", owner="ana")[1])
    for name in ("before", "after"):
        assert told(name) == (("m-1",), {"payments:read"})
    assert told("nobody's") == ((), granted_scopes(scopes))
    registry.record(users.remove_user(registry.account, "ana"))
    assert told("before")[0] == ("m-1",)
    registry.record(users.set_user(registry.account, "ana", "lead"))
    assert told("before") == ((), granted_scopes(scopes))


def test_a_key_that_nobody_answers_for_is_answered_for_by_who_made_it(registry):
    registry.record(users.set_user(registry.account, "ana", "lead"))
    hers = create_key(registry.account, ["admin"], owner="ana")[1]
    registry.record(hers)
    second = create_key(registry.account, ["admin"])[1]
    registry.record(second, by=hers.id)
    third = create_key(registry.account, ["admin"])[1]
    registry.record(third, by=second.id)
    assert users.origin_of(registry.account, third.id) == "ana"
