"""Diagnostics of a file: data first, text second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the text at `span`; an empty span inserts."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the text that resolves a finding; its edits are ordered and don't overlap.

    A `safe` fix can't change a decision: the file means the same with it, or had an error there.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `code` is stable and has a page in docs/diagnostics. `message` is one line in the author's
    terms; `help` is the fix, if known, shown under the underlined span. `fixes` are the changes
    that a program can make, the most likely one first.
    """

    code: str
    severity: Literal["error", "warning"]
    span: Span
    message: str
    help: str | None = None
    fixes: tuple[Fix, ...] = ()
