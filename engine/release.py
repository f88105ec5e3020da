"""Which release of Tollkeeper runs."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version


@cache
def this_release() -> str:
    """The version of the package, such as `0.1.0`. It is read once: the reading parses the README."""
    return version("tollkeeper")
