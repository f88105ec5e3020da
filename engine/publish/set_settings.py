"""Changing an account's settings, for HTTP and commands alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.publish.verbs import AccountVerb, Effect, Progress
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.registry.settings import change_settings
from tollkeeper.engine.runtime import Engine


async def set_settings(
    engine: Engine, account: int, by: str, asked: Mapping[str, object]
) -> tuple[str, ...]:
    """The names of the settings that changed. Raises `Invalid`."""
    async with engine.changing:
        change = change_settings(engine.state.accounts[account], asked)
        if change is None:
            return ()
        await make_change(engine, account, by, change)
        return change.changed


class ChangeSettings(AccountVerb, frozen=True):
    """Change settings, given in the form of `PUT /account`."""

    settings: dict[str, Any]

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        changed = await set_settings(engine, self.number(engine), author, self.settings)
        return Effect(count=len(changed))


def read_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """What `thresholds.deny=0.9` and the like ask for; a value is JSON, or else plain text.

    Raises `Invalid` for one without a name or an equals sign.
    """
    asked: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        *outer, name = path.split(".")
        if not (equals and name):
            message = f"`{text}` is not of the form SETTING=VALUE"
            raise Invalid([Violation("settings", "invalid_format", message)])
        holder = asked
        for step in outer:
            holder = holder.setdefault(step, {})
            if not isinstance(holder, dict):
                message = f"`{path}` is part of a setting that was given already"
                raise Invalid([Violation("settings", "invalid_value", message)])
        holder[name] = _value(value)
    return asked


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
