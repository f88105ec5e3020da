"""Proofs as the interface and the terminal show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from tollkeeper.engine.decision import Action

if TYPE_CHECKING:
    from tollkeeper.engine.offline.prove.proofs import Proof


class ProofDecision(Struct, frozen=True):
    """What a payment is decided by, `condition` null where none is met."""

    action: Action | None
    condition: str | None


class ProofView(Struct, frozen=True):
    """A claim about `of`, a condition, a `must` or the whole rule, and whether it holds of every
    payment there can be. `payment` shows it, `decided` is what is decided of it (by the former
    version, then by this one, where two are compared), `test` the same as a test of the language,
    null where no test can say it. `because` says why nothing was proved, or on which conditions the
    answer rests.
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
