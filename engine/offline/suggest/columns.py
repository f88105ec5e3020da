"""The columns that suggested conditions may read: shipped velocities, their ratios, and facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class SuggestionColumn(NamedTuple):
    """`name` is its let, `text` how a condition writes it, `family` its subject.

    `let` is the let's expression, None for a name that `use velocity` imports.
    """

    name: str
    text: str
    family: str
    let: str | None = None


_DEVICE, _ADDRESS, _USER, _CARD = "device", "ip", "user", "card"
_WINDOWS = ("1h", "24h")
_COUNTED = {
    "payments": (_DEVICE, _ADDRESS, _USER, _CARD),
    "declines": (_DEVICE, _ADDRESS, _USER, _CARD),
    "cards": (_DEVICE, _ADDRESS, _USER),
    "users": (_DEVICE, _ADDRESS, _CARD),
    "emails": (_DEVICE, _ADDRESS),
    "bins": (_DEVICE, _ADDRESS, _USER),
}
_OWN_KEYS = {
    "bin": "method.card.bin",
    "caller": "backend.ip_address",
    "bin_at_merchant": "merchant.id, method.card.bin",
}
_FLAGS = (
    "new_card_for_user",
    "new_card_for_device",
    "is_repeat_after_decline",
    "is_other_card_after_decline",
)
_FACTS = {
    "amount": "amount",
    "score": "score",
    "type": "type",
    "client_kind": "device.client.kind",
    "client_consistent": "device.client.consistent",
}
_ABSENT = ("device", "user.id", "user.email", "order.id")


def suggestion_columns() -> tuple[SuggestionColumn, ...]:
    """Everything that a condition may read."""
    return (*_velocities(), *_own_velocities(), *_shares(), *_facts())


def families() -> frozenset[str]:
    """The families of all columns."""
    return frozenset(column.family for column in suggestion_columns())


def lets_of(columns: Iterable[SuggestionColumn]) -> dict[str, str]:
    """The lets that these columns need, in the order of their dependencies."""
    known = {each.name: each for each in suggestion_columns()}
    found: dict[str, str] = {}
    for column in columns:
        if column.let is None or column.text != column.name:
            continue
        parts = (known[word] for word in column.let.split() if word in known)
        found |= lets_of(parts)
        found[column.name] = column.let
    return found


def reads_velocity(column: SuggestionColumn) -> bool:
    """Whether it is a name that `use velocity` imports."""
    return column.let is None


def table_rule() -> str:
    """A rule that reads every column, each as a let."""
    columns = suggestion_columns()
    lets = [f"  let {each.name} = {each.let}" for each in columns if each.let is not None]
    present = " or ".join(f"{each.name} is present" for each in columns)
    return "\n".join(
        ["rule columns", "  use velocity", *lets, f"  condition all when {present} then deny", ""]
    )


def _velocities() -> Iterator[SuggestionColumn]:
    for metric, keys in _COUNTED.items():
        for key in keys:
            for window in _WINDOWS:
                name = f"{metric}_{window}_per_{key}"
                yield SuggestionColumn(name, name, f"{metric} per {key}")
    yield SuggestionColumn("declines_24h_per_order", "declines_24h_per_order", "declines per order")
    for flag in _FLAGS:
        yield SuggestionColumn(flag, flag, flag)


def _own_velocities() -> Iterator[SuggestionColumn]:
    for key, fields in _OWN_KEYS.items():
        of_key = f"by {fields} over 1h"
        for metric, where in (("payments", ""), ("declines", ' where status == "declined"')):
            name = f"{metric}_1h_per_{key}"
            let = f"count(payments {of_key}{where})"
            yield SuggestionColumn(name, name, f"{metric} per {key}", let)


def _shares() -> Iterator[SuggestionColumn]:
    for key in (_DEVICE, _ADDRESS, _USER, *_OWN_KEYS):
        name = f"declined_share_1h_per_{key}"
        let = f"declines_1h_per_{key} / payments_1h_per_{key}"
        yield SuggestionColumn(name, name, f"declines per {key}", let)


def _facts() -> Iterator[SuggestionColumn]:
    for name, path in _FACTS.items():
        yield SuggestionColumn(f"the_{name}", path, name, path)
    for path in _ABSENT:
        text = f"{path} is missing"
        yield SuggestionColumn(f"no_{path.replace('.', '_')}", text, path, text)
