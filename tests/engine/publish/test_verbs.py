"""A verb is found by the name under which a command leaves it for the running service."""

from __future__ import annotations

import msgspec
import pytest

from tollkeeper.engine.privacy.erasure import EraseUser
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.publish.trials import SetRollout
from tollkeeper.engine.publish.verbs import Verb, find_verb, verb_name

VERBS = [
    CreateAccount("shop"),
    EraseUser("shop", "u-1"),
    SetRollout("shop", "rule", "gate", 2, 10, "user"),
    Store("shop", "rule", "gate", "rule gate", activate=True),
]


@pytest.mark.parametrize("verb", VERBS, ids=verb_name)
def test_a_verb_is_found_by_its_name_and_read_from_its_arguments(verb: Verb) -> None:
    found = find_verb(verb_name(verb))
    assert found is type(verb)
    assert msgspec.json.decode(msgspec.json.encode(verb), type=found) == verb


@pytest.mark.parametrize(
    "name",
    [
        "",
        "publish.trials:Missing",
        "publish.trials:Decider",
        "publish.nowhere:SetShadow",
        "..cli:Commands",
        "publish.verbs:find_verb",
        "publish/trials:SetShadow",
    ],
)
def test_what_is_no_verb_is_not_found(name: str) -> None:
    with pytest.raises(LookupError):
        find_verb(name)
