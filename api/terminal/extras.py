"""Commands that need an optional part of the installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tollkeeper.api.terminal.output import refuse


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around imports that the extra `name` brings; says what to install, and exits 1, without it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("tollkeeper"):
            raise
        refuse(f"this needs an extra: pip install 'tollkeeper[{name}]'")
