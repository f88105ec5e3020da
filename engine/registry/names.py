"""The names of accounts, files and lists (docs/api.md, "Names and commands")."""

from __future__ import annotations

import re

from tollkeeper.engine.registry.errors import Invalid

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_name(field: str, name: str) -> None:
    """Raise `Invalid` at `field` unless `name` is 1 to 64 letters, digits, `_` and `-`."""
    if not _NAME.fullmatch(name):
        message = "a name is 1 to 64 of the characters A-Z, a-z, 0-9, `_` and `-`"
        raise Invalid.at(field, "invalid_format", message)
