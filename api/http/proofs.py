"""Proofs as the interface and the terminal show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action

if TYPE_CHECKING:
    from tollkeeper.engine.offline.prove.proofs import Proof


class ProofDecision(Struct, frozen=True):
    """The decision on a payment; `condition` is null if none is met."""

    action: Action | None
    condition: str | None


class ProofView(Struct, frozen=True):
    """A claim about `of` (a condition, a `must` or the whole rule), and whether it holds for every
    possible payment. `payment` is an example, `decided` its decision (by the former version, then
    by this one, if two are compared), `test` the same as a test block, null if no test can express
    it. `because` says why nothing was proved, or on which conditions the answer depends.
    """

    claim: Literal["reached", "always met", "must", "same", "wider", "narrower", "moved"]
    of: str
    answer: Literal["proved", "refuted", "not proved"]
    because: tuple[str, ...]
    decided: tuple[ProofDecision, ...]
    payment: dict[str, Any] | None
    test: str | None


def proof_view(proof: Proof) -> ProofView:
    verdict = proof.verdict
    payment = None
    if verdict.witness is not None:
        payment = msgspec.to_builtins(verdict.witness.facts.payment)
    return ProofView(
        proof.claim,
        proof.of,
        verdict.answer,
        verdict.because,
        tuple(ProofDecision(each.action, each.condition) for each in verdict.replayed),
        payment,
        proof.test,
    )
