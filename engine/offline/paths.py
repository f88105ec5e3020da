"""Recognise files by their path alone; imports nothing, for callers that only list files."""

from __future__ import annotations

from pathlib import Path

SUFFIX = ".rule"
CASES = "cases"
"""The folder of cases, beside the rule files that are in force for them."""


def is_rule(path: Path) -> bool:
    return path.suffix == SUFFIX


def is_case(path: Path) -> bool:
    return path.suffix == ".jsonl" and path.parent.name == CASES
