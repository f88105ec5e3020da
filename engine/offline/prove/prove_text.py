"""Proofs about a text, and about its differences from the active version, as a job with a time
limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tollkeeper.engine.offline.prove.proofs import Proof, compare_rules, prove_rule
from tollkeeper.engine.offline.prove.worker import open_worker
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.engine.registry.known import StoredNames, known_names
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.grammar.program import Rule

PROOFS_S = 30.0
"""After this time, no further questions are asked about a text."""


class ProofsOfText(NamedTuple):
    """`complete` says whether all questions were answered; `untried` are the `must` lines that were
    not asked about, by title or text.
    """

    proofs: tuple[Proof, ...]
    complete: bool
    untried: tuple[str, ...] = ()


def prove_text(
    _progress: Progress,
    content: bytes,
    stored: StoredNames,
    active: bytes | None,
    thresholds: Thresholds,
    seconds: float = PROOFS_S,
) -> ProofsOfText:
    """Prove a rule, preceded by its differences from the encoded `active` rule. Empty for a text
    with errors, and for other kinds of file.
    """
    reading = read_file(content, known_names(stored))
    rule = reading.program
    if not isinstance(rule, Rule):
        return ProofsOfText((), True)
    former = None if active is None else decode_program(active)
    with open_worker() as worker:
        compared: Iterator[Proof] = iter(())
        if isinstance(former, Rule):
            compared = compare_rules(worker, rule.name, former, rule, thresholds=thresholds)
        proved = prove_rule(worker, rule.name, rule, thresholds)
        found = _until_late(chain(compared, proved), seconds)
    tried = sum(each.claim == "must" for each in found.proofs)
    untried = (
        each.title or one_line(reading.text[each.span.start : each.span.end])
        for each in rule.promises[tried:]
    )
    return found._replace(untried=tuple(untried))


def compare_with_former(former: Rule, rule: Rule, thresholds: Thresholds) -> ProofsOfText:
    """Prove whether both decide alike, and if not, how each condition has changed."""
    with open_worker() as worker:
        compared = compare_rules(worker, rule.name, former, rule, thresholds=thresholds)
        return _until_late(compared, PROOFS_S)


def _until_late(proofs: Iterator[Proof], seconds: float) -> ProofsOfText:
    found: list[Proof] = []
    end = time.monotonic() + seconds
    for proof in proofs:
        found.append(proof)
        if time.monotonic() > end:
            return ProofsOfText(tuple(found), False)
    return ProofsOfText(tuple(found), True)
