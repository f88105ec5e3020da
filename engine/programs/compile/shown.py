"""Values for people, written as in a rule."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.lists.values import IP_BITS, show_network
from tollkeeper.engine.programs.compile.reckoning import lift
from tollkeeper.grammar import types as t

_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000))
_SECOND = 1_000_000

_LITERAL_OR_GAP = re.compile(
    r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|\bmatches\s+(?P<pattern>/(?!/)[^/\\\n]*(?:\\.[^/\\\n]*)*/)"
    r"|(?P<gap>(?:\s|#[^\n]*)++)"
)
_OPENING = "(["
_CLOSING = ")]"


def written_value(value: Any, kind: t.Type) -> str:
    """A value carried as `types.py` says; of a record only whether it is there."""
    if value is None:
        return "missing"
    match kind:
        case t.Boolean():
            return "true" if value else "false"
        case t.Number(scale=None):
            return repr(value)
        case t.Number():
            return f"{lift(value, kind):f}"
        case t.String():
            return json.dumps(value, ensure_ascii=False)
        case t.Ip():
            return show_network(value, IP_BITS)
        case t.Instant():
            return show_instant(value)
        case t.Duration():
            return shown_duration(value)
        case t.Collection():
            return "present" if value else "missing"
        case _:
            return "present"


def shown_duration(microseconds: int) -> str:
    """Such as `1d 2h`, `1.5s` or `-3m`."""
    rest = abs(microseconds)
    parts = []
    for name, unit in _UNITS:
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{name}")
    if rest or not parts:
        seconds = Decimal(rest) / _SECOND
        parts.append(f"{seconds.normalize():f}s")
    return ("-" if microseconds < 0 else "") + " ".join(parts)


def one_line(text: str) -> str:
    """An expression on one line, as it was written but for comments and the space between tokens."""
    return _LITERAL_OR_GAP.sub(_closed_up, text).strip()


def _closed_up(found: re.Match[str]) -> str:
    if pattern := found["pattern"]:
        return f"matches {pattern}"
    if not found["gap"]:
        return found[0]
    before, behind = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return "" if before in _OPENING or behind in _CLOSING else " "
