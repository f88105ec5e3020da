"""Commands that need an optional part of the installation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tollkeeper.api.terminal.output import refuse


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Guard the imports of the extra `name`: if it is missing, say what to install and exit with 1."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("tollkeeper"):
            raise
        refuse(f"this needs an extra: pip install 'tollkeeper[{name}]'")
