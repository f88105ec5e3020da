"""A registry that grows change by change, each through its encoded form, as the journal keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.registry.changes import (
    AccountCreated,
    Change,
    RecordedChange,
    decode_change,
    encode_change,
)
from tollkeeper.engine.registry.state import Account, Configuration, fold_change
from tollkeeper.grammar.program import Constant, Definitions, Let, Rule, Scorecard
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Boolean

NOON = 1_800_000_000_000_000


class Registry:
    """`account` is number 1, `shop`; every entry is a second after the one before it."""

    def __init__(self) -> None:
        self.log: list[RecordedChange] = []
        self.state = Configuration()
        self.record(AccountCreated("shop"))

    def record(self, change: Change, account: int = 1, by: str = "toll_abcdefgh") -> RecordedChange:
        sequence = len(self.log) + 1
        at = NOON + sequence * 1_000_000
        body = encode_change(by, change)
        recorded = decode_change(Entry(sequence, account, Kind.CHANGE, str(account), at, at, body))
        self.log.append(recorded)
        self.state = fold_change(self.state, recorded)
        return recorded

    @property
    def account(self) -> Account:
        return self.state.accounts[1]


@pytest.fixture
def registry() -> Registry:
    return Registry()


def _rule(name: str = "checkout") -> Rule:
    return Rule(name, None, (), (), (), (), "allow", (), ())


@pytest.fixture
def rule() -> Callable[..., Rule]:
    """A checked rule of that name; what it says does not matter to the registry."""
    return _rule


@pytest.fixture
def scorecard() -> Scorecard:
    return Scorecard("bot_behaviour", None, (), (), (), 0.03, (), (), ())


@pytest.fixture
def definitions() -> Definitions:
    always = Constant(1, Span(0, 4), Boolean(), value=True)
    return Definitions("cards", None, (), (), (Let("always", Span(0, 6), always),))
