"""What a file is, by its path alone: nothing is imported here, for those who only look at files."""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".rule"
CASES = "cases"
"""The folder of cases, beside the rule files that are in force for them."""


def is_rule(path: Path) -> bool:
    return path.suffix == SUFFIX


def is_case(path: Path) -> bool:
    return path.suffix == ".jsonl" and path.parent.name == CASES
