"""What several conditions read is worked out once, and only when one of them gets there."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile.python import compile_rule
from tollkeeper.grammar.program import Value
from tollkeeper.tests.engine.programs.compile.payments import VOCABULARY
from tollkeeper.tests.engine.programs.compile.test_programs import checked, paid


@dataclass
class Counting:
    """An empty list that knows what it was asked."""

    asked: list[Value] = field(default_factory=list)

    def contains(self, value: Value, at: int) -> bool:
        self.asked.append(value)
        return False


LATE = """
rule late
  list names: string
  let known = user.id in @names
  condition one when amount > 5 and known then deny
  condition two when amount > 6 and known then deny
  condition three when amount > 7 and not known and score > 0.5 then deny
"""
EARLY = """
rule early
  list names: string
  let known = user.id in @names
  condition one when known and amount > 5 then deny
  condition two when amount > 6 and known then deny
  condition three when any(transactions where duration > 1 and known) then deny
"""
WRITTEN_TWICE = """
rule twice
  list names: string
  condition one when amount > 5 and user.id in @names then deny
  condition two when amount > 6 and user.id in @names then deny
"""


@pytest.mark.parametrize("text", [LATE, EARLY, WRITTEN_TWICE])
def test_a_list_is_asked_once_however_many_conditions_ask(text: str) -> None:
    names = Counting()
    decide = compile_rule(checked(text), VOCABULARY)
    seen = paid('amount = 9, user.id = "a", transactions = [{"duration": 5}, {"duration": 6}]')
    assert decide(seen, None, (), Environment(lists={"names": names})) == -1
    assert names.asked == ["a"]


@pytest.mark.parametrize("text", [LATE, WRITTEN_TWICE])
def test_a_let_that_no_condition_reaches_is_not_worked_out(text: str) -> None:
    names = Counting()
    decide = compile_rule(checked(text), VOCABULARY)
    assert decide(paid('amount = 1, user.id = "a"'), None, (), Environment({"names": names})) == -1
    assert names.asked == []
