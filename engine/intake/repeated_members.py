"""Find members that a JSON object has twice: JSON readers differ in which one they use.

So a proxy and the service might see two different payments in one body. Our decoder silently uses
the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

try:
    from tollkeeper.engine.intake._members import may_repeat_members as may_repeat_members
except ImportError:  # where C can't be built

    def may_repeat_members(_body: bytes, /) -> bool:
        """Whether an object of a JSON text may name a member twice."""
        return True


class _Object(list[tuple[str, Any]]):
    """An object as its members were written."""


def repeated_members(body: bytes) -> tuple[str, ...]:
    """The path of each member that its object names twice: `payment.amount`.

    Empty for a text that is no JSON, or nested too deeply to be searched.
    """
    try:
        whole = json.loads(body, object_pairs_hook=_Object, parse_int=str, parse_float=str)
        return tuple(_repeated_members(whole, ""))
    except (ValueError, RecursionError):
        return ()


def _repeated_members(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Object):
        seen = set[str]()
        for name, member in value:
            place = f"{path}.{name}" if path else name
            if name in seen:
                yield place
            seen.add(name)
            yield from _repeated_members(member, place)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated_members(item, f"{path}[{index}]")
