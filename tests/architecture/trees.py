"""The syntax trees that these tests look at, each read once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(), str(file))
