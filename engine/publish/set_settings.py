"""Change an account's settings, for HTTP and commands alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tollkeeper.engine.make_change import change_account
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.accounts import check_live
from tollkeeper.engine.registry.changes import SettingsChanged
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.registry.settings import change_settings, check_settings_alone
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.runtime import Engine


async def set_settings(
    engine: Engine, account: int, by: str, requested: Mapping[str, object]
) -> tuple[str, ...]:
    """Change settings; returns the names of those that changed. Raises `Invalid`."""

    def decide(state: Account) -> SettingsChanged | None:
        check_live(state)
        change = change_settings(state, requested)
        if change is not None:
            check_settings_alone(state, change)
        return change

    made = await change_account(engine, account, by, decide)
    return () if made is None else made.changed


class ChangeSettings(AccountVerb, frozen=True):
    """Change settings, given in the form of `PUT /account`; rates that aren't given stay.

    A rate given as null is removed.
    """

    settings: dict[str, Any]

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        number = self.number(engine)
        kept = engine.state.accounts[number].settings.rates
        changed = await set_settings(engine, number, author, with_rates(self.settings, kept))
        return Effect(count=len(changed))


def with_rates(
    requested: Mapping[str, Any], kept: Mapping[str, Mapping[str, str]]
) -> Mapping[str, Any]:
    """The requested settings, completed with the rates that stay as they are."""
    rates = requested.get("rates")
    if not isinstance(rates, dict) or not all(isinstance(each, dict) for each in rates.values()):
        return requested
    whole = {
        from_: {
            to: price
            for to, price in {**kept.get(from_, {}), **rates.get(from_, {})}.items()
            if price is not None
        }
        for from_ in {**kept, **rates}
    }
    return {**requested, "rates": {from_: prices for from_, prices in whole.items() if prices}}


def read_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """The settings that texts like `thresholds.deny=0.9` request; a value is JSON, or plain text.

    Raises `Invalid` for one without a name or an equals sign.
    """
    requested: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        *outer, name = path.split(".")
        if not (equals and name):
            message = f"`{text}` is not of the form SETTING=VALUE"
            raise Invalid.at("settings", "invalid_format", message)
        holder = requested
        for step in outer:
            holder = holder.setdefault(step, {})
            if not isinstance(holder, dict):
                message = f"`{path}` is part of a setting that was given already"
                raise Invalid.at("settings", "invalid_value", message)
        holder[name] = _value(value)
    return requested


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
