"""What a change that can be asked for from outside looks like, and how its name finds it again.

HTTP performs it for a key, a command for its author.
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
    """What a verb brought about.

    `key` is shown this once; `version` is the one stored or active now; `count` says how many
    things changed; `erased` how much of a person's data went; `warnings` what the version reads
    that is not there.
    """

    key: str | None = None
    version: int | None = None
    count: int | None = None
    erased: PersonErased | None = None
    warnings: tuple[Violation, ...] = ()


class Verb(Struct, frozen=True):
    """A change with its arguments."""

    async def perform(self, engine: Engine, author: str, progress: Progress) -> Effect:
        """Do it; `progress` is told the share that is done. Raises `Refused`, `JournalError`."""
        raise NotImplementedError


class AccountVerb(Verb, frozen=True):
    """A change within the account of this name."""

    account: str

    def number(self, engine: Engine) -> int:
        """The account's number. Raises `NotFound`."""
        return find_account(engine.state, self.account).number


def verb_name(verb: Verb) -> str:
    """The name under which a running service finds the verb: `publish.trials:SetShadow`."""
    of = type(verb)
    return f"{of.__module__.removeprefix(_ENGINE)}:{of.__name__}"


def find_verb(name: str) -> type[Verb]:
    """The verb of this name. Raises `LookupError` when this release has none."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise LookupError(name)
    try:
        verb = getattr(import_module(_ENGINE + found[1]), found[2])
    except (ImportError, AttributeError):
        raise LookupError(name) from None
    if not (isinstance(verb, type) and issubclass(verb, Verb)):
        raise LookupError(name)
    return verb
