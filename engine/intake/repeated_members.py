"""Find members that a JSON object has twice: JSON readers differ in which one they use.

So a proxy and the service might see two different payments in one body. Our decoder silently uses
the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeAlias

from tollkeeper.engine.intake.field_rules import printable_name
from tollkeeper.engine.intake.violations import MAX_LISTED

try:
    from tollkeeper.engine.intake._members import may_repeat_members as may_repeat_members
except ImportError:  # where C can't be built

    def may_repeat_members(_body: bytes, /) -> bool:
        """Whether an object of a JSON text may name a member twice."""
        return True


_Place: TypeAlias = "tuple[_Place, str | int] | None"
"""Where a value is: the place around it, and its name or index there; None for the whole body."""
_LONGEST_PLACE = 1024


class _Object(list[tuple[str, Any]]):
    """An object as its members were written."""


def repeated_members(body: bytes) -> tuple[str, ...]:
    """The paths of the first `MAX_LISTED` members that their object names twice: `payment.amount`.

    Of a long path, the end. Empty for a text that is no JSON, or nested too deeply to be searched.
    """
    try:
        whole = json.loads(body, object_pairs_hook=_Object, parse_int=str, parse_float=str)
        return tuple(map(_path_of, islice(_repeated_members(whole, None), MAX_LISTED)))
    except (ValueError, RecursionError):
        return ()


def _repeated_members(value: Any, place: _Place) -> Iterator[_Place]:
    # No path is built before one is shown: a hostile body has long names around many members.
    if isinstance(value, _Object):
        seen = set[str]()
        for name, member in value:
            if name in seen:
                yield place, name
            seen.add(name)
            if isinstance(member, list):
                yield from _repeated_members(member, (place, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, list):
                yield from _repeated_members(item, (place, index))


def _path_of(place: _Place) -> str:
    parts: list[str] = []
    while place is not None:
        place, part = place
        parts.append(f"[{part}]" if isinstance(part, int) else f".{printable_name(part)}")
    path = "".join(reversed(parts)).removeprefix(".")
    return path if len(path) <= _LONGEST_PLACE else f"…{path[-_LONGEST_PLACE:]}"
