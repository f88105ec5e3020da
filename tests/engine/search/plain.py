"""What the journal says, read and counted in the plainest way, to hold the index against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.facts import StoredFacts
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.labels.label import SOURCES
from tollkeeper.engine.programs.decider import answered_action
from tollkeeper.engine.search.filters import Filter, read_filter, read_members
from tollkeeper.tests.engine.offline.backtest.shop import Shop


@dataclass
class Plain:
    """A payment as the journal knows it."""

    id: str
    sequence: int
    arrived: int
    payment: Any
    decision: Decision
    card: str | None
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str | None:
        sure = [self.labels[s] for s in SOURCES if self.labels.get(s) in ("fraud", "legitimate")]
        return sure[0] if sure else "unsure" if self.labels else None

    def has(self, name: str, text: str) -> bool:
        """Whether the payment has what a member of a filter asks for."""
        payment, rule = self.payment, self.decision.rule
        values: dict[str, Any] = {
            "action": answered_action(self.decision) or "none",
            "holdout": "true" if self.decision.held_out else "false",
            "rule": "none" if rule is None else rule.name,
            "version": None if rule is None else str(rule.version),
            "condition": None if rule is None else rule.condition or "none",
            "status": payment.status,
            "label": self.label or "none",
            "merchant": payment.merchant.id,
            "currency": payment.currency,
            "card": self.card,
            "device": payment.device
            and payment.device.fingerprint
            and payment.device.fingerprint.id,
            "ip": payment.device and payment.device.ip_address,
            "user": payment.user and payment.user.id,
            "email": payment.user and payment.user.email,
            "order": payment.order and payment.order.id,
            "id": self.id,
        }
        bin_ = payment.method.card and payment.method.card.bin
        if name == "labelled":
            source, _, verdict = text.partition(":")
            return self.labels.get(source) == verdict
        if name == "bin":
            return bin_ is not None and text in (bin_, bin_[:6])
        return bool(values[name] == text)


async def recount(shop: Shop) -> list[Plain]:
    """Every payment of the shop, oldest first."""
    await shop.engine.journal.flush()
    found: dict[str, Plain] = {}
    for batch in shop.engine.journal.replay(shop.account):
        for entry in batch:
            match entry.kind:
                case Kind.PAYMENT:
                    recorded = msgspec.json.decode(entry.body, type=StoredFacts)
                    decision = (
                        msgspec.json.decode(entry.outcome, type=Decision)
                        if entry.outcome
                        else Decision()
                    )
                    found[entry.id] = Plain(
                        entry.id,
                        entry.sequence,
                        entry.arrived,
                        recorded.payment,
                        decision,
                        recorded.card_fingerprint,
                    )
                case Kind.UPDATE:
                    recorded = msgspec.json.decode(entry.body, type=StoredFacts)
                    found[entry.id].payment = recorded.payment
                    found[entry.id].card = recorded.card_fingerprint
                case Kind.LABEL:
                    said = msgspec.json.decode(entry.body)
                    found[entry.id].labels.pop(said["source"], None)
                    if said["label"] is not None:
                        found[entry.id].labels[said["source"]] = said["label"]
    return list(found.values())


def chosen(payments: list[Plain], text: str, now: int) -> list[Plain]:
    """Those that a filter's text means, worked out from its members alone."""
    members = read_members(text)
    wanted: Filter = read_filter(members, now)
    plain = [(name, value) for name, value in members if name not in _SPANS]
    names = {name for name, _ in plain}

    def fits(each: Plain) -> bool:
        if each.arrived < (wanted.since or 0) or each.arrived >= (wanted.until or 2**63):
            return False
        if wanted.scored:
            score = each.decision.score
            highest = 100 if wanted.score_to is None else wanted.score_to
            if score is None or not wanted.score_from <= score <= highest:
                return False
        return all(
            any(each.has(other, value) for other, value in plain if other == name) for name in names
        )

    return [each for each in payments if fits(each)]


_SPANS = ("since", "until", "score", "score_from", "score_to")
