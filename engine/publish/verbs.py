"""Verbs: changes that can be requested from outside, each with its arguments and a name to find it
by.

HTTP performs a verb in the name of a key, a command in the name of its author.
"""

from __future__ import annotations

import re
from importlib import import_module

from msgspec import Struct

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.changes import PersonErased
from tollkeeper.engine.runtime import Engine

_ENGINE = "tollkeeper.engine."
_NAME = re.compile(r"([a-z_.]+):([A-Z][A-Za-z]*)")


class Effect(Struct, frozen=True, omit_defaults=True):
    """The result of a verb.

    `key` is a secret that is shown only here; `version` the one stored or active now; `count` how
    many things changed; `erased` how much of a person's data was erased; `warnings` lists and rates
    that the version needs and the account lacks.
    """

    key: str | None = None
    version: int | None = None
    count: int | None = None
    erased: PersonErased | None = None
    warnings: tuple[Violation, ...] = ()


class Verb(Struct, frozen=True):
    """A change, as data: its arguments are its fields."""

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        """Make the change; `progress` gets the share done. Raises `Refused`, `JournalError`."""
        raise NotImplementedError


class AccountVerb(Verb, frozen=True):
    """A change in the account with this name."""

    account: str

    def number(self, engine: Engine) -> int:
        """The account's number. Raises `NotFound`."""
        return find_account(engine.state, self.account).number


def verb_name(verb: Verb) -> str:
    """The name under which a running service finds the verb: `publish.trials:SetShadow`."""
    cls = type(verb)
    return f"{cls.__module__.removeprefix(_ENGINE)}:{cls.__name__}"


def find_verb(name: str) -> type[Verb]:
    """The verb of this name. Raises `LookupError` when this release has none."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise LookupError(name)
    try:
        verb = getattr(import_module(_ENGINE + parts[1]), parts[2])
    except (ImportError, AttributeError):
        raise LookupError(name) from None
    if not (isinstance(verb, type) and issubclass(verb, Verb)):
        raise LookupError(name)
    return verb
