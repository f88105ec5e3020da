from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.registry.accounts import create_account, find_account
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.state import Configuration


def test_an_account_gets_the_next_number_and_is_found_by_name(registry):
    number, change = create_account(registry.state, "market")
    registry.record(change, account=number)
    assert number == 2
    assert find_account(registry.state, "market").name == "market"
    assert find_account(registry.state, "shop").number == 1


def test_a_name_in_use_is_a_conflict(registry):
    with pytest.raises(Conflict, match="there is an account `shop` already"):
        create_account(registry.state, "shop")


def test_an_unknown_account_is_not_found(registry):
    with pytest.raises(NotFound) as refused:
        find_account(registry.state, "market")
    assert refused.value.violations[0].type == "not_found"


@pytest.mark.parametrize("name", ["", "a b", "é", "a/b", "x" * 65, "shop\n", "a.b"])
def test_a_name_of_other_characters_or_too_long_is_refused(name):
    with pytest.raises(Invalid) as refused:
        create_account(Configuration(), name)
    assert refused.value.violations[0].field == "account.name"


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_every_name_of_the_allowed_form_is_taken(name):
    assert create_account(Configuration(), name)[1].name == name
