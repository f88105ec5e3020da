"""What the language has to say about a file: data first, text second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Edit:
    """What stands at `span` becomes `replacement`; an empty span is a place to insert it."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the text that removes a finding; its edits stand apart and in order.

    `safe` says that it can't change a decision: the file means the same with it, or it had an
    error there and can mean nothing else.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `code` is stable and has a page in docs/diagnostics. `message` is one line in the author's
    words; `help` is the fix, where one is known, shown under the underlined span. `fixes` are
    the changes of the text that a program can make, the most likely one first.
    """

    code: str
    severity: Literal["error", "warning"]
    span: Span
    message: str
    help: str | None = None
    fixes: tuple[Fix, ...] = ()
