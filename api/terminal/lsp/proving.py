"""Proofs about a saved rule: conditions that are never reached, promises that can be broken.

They run as `toll prove` in a process, which is killed at the next edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import msgspec
from msgspec import Struct

from tollkeeper.api.terminal.subcommand import toll
from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.program import Rule
from tollkeeper.grammar.services.document import Document


class _Proved(Struct, frozen=True):
    """The part of `toll prove --json` that is read."""

    claim: str
    of: str
    answer: str
    because: tuple[str, ...]
    test: str | None


async def prove_saved(path: Path, document: Document) -> tuple[Diagnostic, ...]:
    """Return findings beyond the checker's; none for files other than rules, or without the extra
    `prove`.
    """
    if not isinstance(document.program, Rule) or find_spec("z3") is None:
        return ()
    _, out, _ = await toll("prove", "--json", "--", path.name, folder=path.parent)
    try:
        found = msgspec.json.decode(out, type=tuple[_Proved, ...])
    except msgspec.MsgspecError:
        return ()
    known = {(each.code, each.span) for each in document.diagnostics}
    refuted = (each for each in found if each.answer == "refuted")
    diagnostics = (each for proved in refuted for each in _diagnostics_of(proved, document))
    return tuple(each for each in diagnostics if (each.code, each.span) not in known)


def _diagnostics_of(proved: _Proved, document: Document) -> Iterator[Diagnostic]:
    assert document.parsed.file is not None
    for item in document.parsed.file.items:
        match item:
            case s.Condition() if proved.claim == "reached" and item.name.text == proved.of:
                span, name = item.name.span, item.name.text
                if proved.because:
                    yield say.covered(span, name, proved.because)
                else:
                    yield say.never_met(span, "condition", name)
            case s.Must() if proved.claim == "must":
                title = "must" if item.title is None else item.title.value
                if title == proved.of:
                    payment = None if proved.test is None else dedent(proved.test).strip()
                    message = f"`{title}` does not hold of every payment"
                    yield Diagnostic("broken-must", "error", item.span, message, payment)
