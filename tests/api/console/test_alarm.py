"""What Now raises the alarm about: the cause, beside all that its payments pass by."""

from __future__ import annotations

from typing import Any

import pytest

from tollkeeper.api.console.alarm import find_cause


def mover(by: str, payments: int, denied: int, usual: float = 0.0) -> dict[str, Any]:
    tally = {"payments": payments, "actions": {"deny": denied}}
    return {"by": by, "value": by, "payments": payments, "usual": usual, "tally": tally}


@pytest.mark.parametrize(
    ("movers", "cause"),
    [
        # A BIN is guessed at a busy merchant, whose other payments are honest.
        ([mover("merchant", 197, 172), mover("bin", 187, 172), mover("device", 40, 40)], "bin"),
        # All that is denied at the merchant is of many BINs.
        ([mover("bin", 40, 40), mover("merchant", 197, 190)], "merchant"),
        # Three values of the same payments: the narrowest is blocked with the least harm.
        ([mover("network", 68, 67), mover("ip", 68, 67), mover("device", 68, 67)], "device"),
        # A merchant that is always busy and often denied is nothing new.
        ([mover("merchant", 200, 150, usual=120.0), mover("bin", 25, 20)], "bin"),
        ([mover("merchant", 200, 90), mover("bin", 19, 19)], None),
        ([], None),
    ],
)
def test_the_alarm_names_what_is_denied_beyond_all_other_traffic(
    movers: list[dict[str, Any]], cause: str | None
) -> None:
    found = find_cause(movers, [{"payments": 500, "actions": {"deny": 230}}])
    assert (None if found is None else found["by"]) == cause


def test_an_hour_of_nothing_but_the_attack_has_its_cause() -> None:
    attack = mover("bin", 30, 30)
    assert find_cause([attack], [attack["tally"]]) is attack
