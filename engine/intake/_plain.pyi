from collections.abc import Mapping
from typing import Any

from msgspec import Raw

def are_public(
    headers: Mapping[str, Any], harmless: frozenset[str], watched: frozenset[str], /
) -> bool: ...
def is_plain(value: dict[str, Any], /) -> bool: ...
def plain_amount(text: Raw | bytes, /) -> float | None: ...
