"""What the language has to say about a file: data first, text second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tollkeeper.grammar.syntax import Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `code` is stable and has a page in docs/diagnostics. `message` is one line in the author's
    words; `help` is the fix, where one is known, shown under the underlined span.
    """

    code: str
    severity: Literal["error", "warning"]
    span: Span
    message: str
    help: str | None = None
