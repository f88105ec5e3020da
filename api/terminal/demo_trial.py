"""What the demo tries as a shadow: whether a challenge would do where cards come from one address."""

from __future__ import annotations

_DENIED = """when cards_on_address > 6
    then deny"""
_TESTED = """  test "the seventh card from one address is refused"
    given cards_on_address = 7
    expect deny by card_list"""


def with_a_challenge(rule: str) -> str:
    """The text of the starter rule, whose condition `card_list` challenges; its test says so too."""
    tested = _TESTED.replace("refused", "challenged").replace("deny", "challenge")
    challenged = _DENIED.replace("deny", "challenge")
    return rule.replace(_DENIED, challenged, 1).replace(_TESTED, tested, 1)
