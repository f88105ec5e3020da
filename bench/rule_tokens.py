"""How many tokens do conditions take, compared with the same ones in languages that others publish?

    python -m tollkeeper.bench.rule_tokens

Reads the first table of docs/coming-from.md, and tests/rules/published.rule, whose `let`s count
too. A dotted name, a text, a number and a sign are one token each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coming-from.md"
PUBLISHED = ROOT / "tests" / "rules" / "published.rule"

_ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
_RULE = re.compile(
    r"^ *# (?:Allow|Block|Review) if ([^\n]*)\n *condition \w+\s+when\s+(.*?)\s+then \w+$",
    re.MULTILINE | re.DOTALL,
)
_LET = re.compile(r"^ *let .*$", re.MULTILINE)
_TOKEN = re.compile(r"::?\w+::?|[@$]?\w+(?:\.\w+)*|\"[^\"]*\"|'[^']*'|[!=<>]=|\S")
_FRAMES = 2, 5
"""`Block if`, and `condition NAME when … then deny`."""


class Pair(NamedTuple):
    """One condition in both languages."""

    theirs: str
    ours: str


def pairs() -> list[Pair]:
    """Return the rows of the table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Radar") : text.index("## SQL")]
    return [Pair(*found.groups()) for found in _ROW.finditer(table)]


def published() -> tuple[list[Pair], list[str]]:
    """Return the rules of the file, and the `let`s that they share."""
    text = PUBLISHED.read_text(encoding="utf-8")
    return [Pair(*found.groups()) for found in _RULE.finditer(text)], _LET.findall(text)


def tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def main() -> None:
    of_page = pairs()
    theirs, ours = (sum(map(tokens, each)) for each in zip(*of_page, strict=True))
    print(
        f"{len(of_page)} conditions of the page: {theirs} tokens there, {ours} here, {ours / theirs:.2f} to 1"
    )
    rules, lets = published()
    theirs, ours = (sum(map(tokens, each)) for each in zip(*rules, strict=True))
    ours += sum(map(tokens, lets))
    framed = [
        tokens_ + frame * len(rules) for tokens_, frame in zip((theirs, ours), _FRAMES, strict=True)
    ]
    print(
        f"{len(rules)} published rules: {theirs} tokens there, {ours} here with their lets,"
        f" {ours / theirs:.2f} to 1; with what stands around a condition {framed[1] / framed[0]:.2f}"
    )


if __name__ == "__main__":
    main()
