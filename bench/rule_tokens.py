"""How many tokens conditions take here, beside the same ones in Radar's rule language.

    python -m tollkeeper.bench.rule_tokens

Reads the first table of docs/coming-from.md. A name with its dots, a text, a number and a sign are
a token each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"

_ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
_TOKEN = re.compile(r"::?\w+::?|@?\w+(?:\.\w+)*|\"[^\"]*\"|'[^']*'|[!=<>]=|\S")


class Pair(NamedTuple):
    """One condition in both languages."""

    radar: str
    ours: str


def pairs() -> list[Pair]:
    """The rows of the table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Radar") : text.index("## SQL")]
    return [Pair(*found.groups()) for found in _ROW.finditer(table)]


def tokens(condition: str) -> int:
    return len(_TOKEN.findall(condition))


def main() -> None:
    found = pairs()
    radar, ours = (sum(map(tokens, each)) for each in zip(*found, strict=True))
    print(f"{len(found)} conditions: {radar} tokens there, {ours} here, {ours / radar:.2f} to 1")


if __name__ == "__main__":
    main()
