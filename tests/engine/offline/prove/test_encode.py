"""A formula says of a payment what the interpreter says, whatever the program."""

from __future__ import annotations

import os
import sys
from random import Random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tollkeeper.engine.facts.clients import read_client
from tollkeeper.engine.facts.facts import Facts, derive
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.prove.encode import EncodedProgram
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.payment import PaymentSource
from tollkeeper.engine.offline.prove.search import NotProvedError, find_any
from tollkeeper.engine.offline.prove.terms import TRUE_TERM, UnsayableError
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate, with_lets
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.tests.engine.programs.compile.payments import TEXTS, VOCABULARY
from tollkeeper.tests.engine.programs.compile.programs import rules
from tollkeeper.tests.engine.programs.compile.test_agreement import scalars

PROGRAMS = int(os.environ.get("TOLLKEEPER_PROOFS", "6"))
SECONDS = 2.0
GOALS = 4
PAYMENTS = 20


def test_every_part_of_a_program_has_the_interpreters_value() -> None:
    """With `-s` it says how many values were compared."""
    compared = 0

    @settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
    @given(rules(), st.integers(0, 2**32))
    def compare(program: p.Rule, seed: int) -> None:
        nonlocal compared
        compared += _compare(program, Random(seed))

    compare()
    sys.stdout.write(f"{compared:,} values of {PROGRAMS:,} programs compared\n")
    assert compared > PROGRAMS


def _compare(program: p.Rule, random: Random) -> int:
    """How many values were the interpreter's."""
    compared = 0
    encoder = Encoder(PaymentSource(VOCABULARY))
    formulas = EncodedProgram(encoder, program.lets)
    parts = [part for part in scalars(program) if _is_sayable(formulas, part)]
    booleans = [part for part in parts if isinstance(part.type, t.Boolean)]
    for part in random.sample(booleans, min(GOALS, len(booleans))):
        term = formulas.term(part)
        wanted = random.choice((True, False))
        try:
            found = find_any(encoder, term.is_true if wanted else term.is_false, SECONDS)
            possible = found is not None or find_any(encoder, TRUE_TERM, SECONDS) is not None
        except NotProvedError:
            continue
        assert possible, "what is assumed of every payment contradicts itself"
        if found is None:
            for _ in range(PAYMENTS):
                scope = _scope(program, _payment(random), {}, Environment(), 50)
                assert evaluate(part, scope) is not wanted, part
            continue
        witness = found.witness
        scope = _scope(program, witness.facts, witness.values, witness.environment, witness.score)
        for each in parts:
            said = found.reader.value(formulas.term(each))
            meant = carry(evaluate(each, scope), each.type)
            assert said == meant, (each, said, meant)
            compared += 1
    return compared


def _is_sayable(formulas: EncodedProgram, part: p.Expression) -> bool:
    try:
        formulas.term(part)
    except UnsayableError:
        return False
    return True


def _scope(
    program: p.Rule,
    facts: Facts,
    values: Any,
    environment: Environment,
    score: int | None,
) -> EvaluationScope:
    scope = EvaluationScope(
        vocabulary=VOCABULARY,
        digests=Digests(program.lets),
        facts=facts,
        score=score if score is not None else 0,
        histories=values,
        environment=environment,
    )
    return with_lets(scope, program.lets)


def _payment(random: Random) -> Facts:
    """A payment that the interface accepts, with anything optional missing."""
    pick = random.choice
    texts = [text for text in TEXTS if text and text.isascii() and text != "\x00"]

    def some(**fields: Any) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if random.random() < 0.7}

    card = {"network": pick(("visa", "elo")), "presence": "card_present"}
    body = {
        "id": "p",
        "type": pick(("purchase", "verify")),
        "status": pick(("initiated", "failed")),
        "currency": pick(("BRL", "EUR", "USD")),
        "timestamp": f"202{random.randrange(5, 10)}-03-30T0{random.randrange(10)}:30:00Z",
        "method": {
            "type": pick(texts),
            **some(card={**card, **some(bin="41111111", last_four="1234")}),
        },
        "merchant": {"id": pick(texts), **some(country=pick(("BR", "US")))},
        **some(
            amount=pick((0.0, 0.01, 9.99, 10.0, 1e12)),
            user=some(id=pick(texts), email=pick(texts)),
            order=some(id=pick(texts)),
            device=some(ip_address="1.2.3.4", headers={"X-A": pick(texts)}),
            metadata={"a": pick((1, 0.3, True, "a")), "b": pick((0, "", False))},
        ),
    }
    payment = msgspec.convert(body, Payment)
    return derive(payment, to_microseconds(payment.timestamp), read_client)
