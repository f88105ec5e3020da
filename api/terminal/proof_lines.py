"""Proofs on a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from rich.text import Text

from tollkeeper.api.http.proofs import proof_view
from tollkeeper.api.terminal.output import NO, OK
from tollkeeper.engine.offline.prove.proofs import Proof, next_step
from tollkeeper.engine.offline.prove.questions import ProofVerdict
from tollkeeper.engine.offline.prove.witness import Witness

NOT_PROVED = 3
"""The exit code if something is unproved and nothing refuted."""
_MARKS = {"proved": ("✓", "green"), "refuted": ("✗", "red"), "not proved": ("?", "yellow")}


def draw_proof(proof: Proof) -> Iterator[Text]:
    """Yield the answer in one line, then the example payment."""
    verdict = proof.verdict
    yield Text.assemble(_MARKS[verdict.answer], f" {proof.file}: {_verdict_text(proof)}")
    if verdict.answer == "not proved":
        yield Text(f"  {next_step(proof)}", "dim")
    shows_payment = verdict.answer == "refuted" or proof.claim in ("wider", "narrower")
    if verdict.witness is None or not shows_payment:
        return
    if proof.test is not None:
        for line in proof.test.splitlines():
            yield Text(f"  {line}", "dim")
    else:
        payment = json.dumps(payment_json(verdict.witness), ensure_ascii=False)
        yield Text(f"  {payment}", "dim")
    if proof.claim == "same":
        before, after = (_decision_text(each.action, each.condition) for each in verdict.replayed)
        yield Text(f"  before: {before}, after: {after}")


def _verdict_text(proof: Proof) -> str:
    answer, of = proof.verdict.answer, f"`{proof.of}`"
    if answer == "not proved":
        return f"{proof.claim} {of}: not proved, {'; '.join(proof.verdict.because)}"
    match proof.claim:
        case "reached" if answer == "proved":
            return f"{of} can be met"
        case "reached":
            return f"{of} {_why(proof.verdict)}"
        case "always met":
            return f"{of} is met by every payment that comes to it"
        case "must":
            return f"{of} holds of every payment" if answer == "proved" else f"{of} can be broken"
        case "same" if answer == "proved":
            return f"both versions of {of} decide every payment alike"
        case "same":
            return f"the versions of {of} decide this payment differently"
        case "moved":
            return f"{of} stands at another place among the conditions"
        case _:
            more = "meets more" if proof.claim == "wider" else "meets less"
            return f"{of} {more} than before, such as"


def _why(verdict: ProofVerdict) -> str:
    if not verdict.because:
        return "can't be met by any payment"
    earlier = " or ".join(f"`{each}`" for each in verdict.because)
    return f"is never reached: wherever it is met, {earlier} is met before"


def _decision_text(action: str, condition: str | None) -> str:
    return f"{action} by {condition}" if condition else action


def payment_json(witness: Witness) -> dict[str, Any]:
    """Return the payment as a merchant would send it, without values that only the proof needed."""
    payment: dict[str, Any] = msgspec.to_builtins(witness.facts.payment)
    return payment


def proof_json(proof: Proof) -> dict[str, Any]:
    """Return a proof in the form of `toll prove --json`."""
    view: dict[str, Any] = msgspec.to_builtins(proof_view(proof))
    return {"file": proof.file, **view}


def exit_code_of(proofs: Iterable[Proof]) -> int:
    """Return a command's exit code; a refuted proof takes precedence."""
    answers = {each.verdict.answer for each in proofs}
    if "refuted" in answers:
        return NO
    return NOT_PROVED if "not proved" in answers else OK
