"""The demo's shadow version: would a challenge suffice for many cards from one address?"""

from __future__ import annotations

_DENIED = """when cards_on_address > 6
    then deny"""
_TESTED = """  test "the seventh card from one address is refused"
    given cards_on_address = 7
    expect deny by card_list"""


def with_a_challenge(rule: str) -> str:
    """Return the starter rule with `challenge` as the action of `card_list`, and in its test."""
    tested = _TESTED.replace("refused", "challenged").replace("deny", "challenge")
    challenged = _DENIED.replace("deny", "challenge")
    return rule.replace(_DENIED, challenged, 1).replace(_TESTED, tested, 1)
