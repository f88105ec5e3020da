"""Does the prover distinguish every single change of the shipped rules from the original?

    python -m tollkeeper.bench.mutants [--seconds 2] [--every 1]

In every shipped rule, each comparison, bound, unit, operator, test, action and order of two
conditions is changed alone, in each of a few ways. Mutants that the checker refuses are left out.
The others are compared with the original: distinguished by a payment that the interpreter and the
compiled rule confirm, proved equal, or not proved. `--every 5` tries only each fifth.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from rich.progress import track

from tollkeeper.bench.tables import show
from tollkeeper.engine.offline.prove.questions import ProofAnswer, compare_programs
from tollkeeper.engine.offline.prove.worker import open_worker
from tollkeeper.engine.offline.rule_files import rule_files
from tollkeeper.engine.offline.testing.files import library_of, load_file
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.registry.changes import Thresholds
from tollkeeper.grammar.program import Rule

_COMPARISONS = {
    ">=": (">", "<", "=="),
    "<=": ("<", ">", "=="),
    ">": (">=", "<=", "!="),
    "<": ("<=", ">=", "!="),
    "==": ("!=",),
    "!=": ("==",),
}
_UNITS = {"m": ("h", "d"), "h": ("m", "d"), "d": ("h", "m")}
_OPERATORS = {"and": "or", "or": "and", "+": "-", "-": "+", "*": "/", "/": "*"}
_TESTS_OF_VALUES = {
    "is missing": "is present",
    "is present": "is missing",
    "not in": "in",
    "in": "not in",
    "starts with": "ends with",
    "ends with": "starts with",
    "contains": "starts with",
}
_TOKEN = re.compile(
    r"""(?P<skipped>"(?:[^"\\]|\\.)*"|/(?:[^/\\\n]|\\.)+/|\#[^\n]*)"""
    r"|(?P<unit>\b\d+[mhd]\b)|(?P<bound>\b\d+(?:\.\d+)?\b)|(?P<comparison>>=|<=|==|!=|>|<)"
    r"|(?P<operator>\b(?:and|or)\b|(?<= )[-+*/](?= ))"
    r"|(?<=then )(?P<action>allow|challenge|deny)"
    r"|(?P<test>\b(?:is missing|is present|not in|in|starts with|ends with|contains)\b)"
)
_TESTS = re.compile(r"^  (?:test|must) .*", re.MULTILINE | re.DOTALL)
_CONDITION = re.compile(
    r"^  condition .*?(?=^  (?:condition|otherwise)\b|\Z)", re.MULTILINE | re.DOTALL
)


class Mutant(NamedTuple):
    """A changed text; `kind` says what was changed."""

    file: str
    kind: str
    text: str


class _Compared(NamedTuple):
    """`cpu` is the processor time of the comparison, in seconds."""

    answer: ProofAnswer
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    rules = dict(shipped_rules())
    known = library_of([SHIPPED]).known
    made = [each for path, text in texts(rules) for each in mutants(path, text)]
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    times: list[float] = []
    unproved: Counter[str] = Counter()
    with open_worker(options.seconds) as worker:
        for each in track(made[:: options.every], "mutants"):
            changed = read_file(each.text.encode(), known).program
            if not isinstance(changed, Rule):
                answers[each.kind]["refused"] += 1
                continue
            original = rules[each.file]
            found = worker.ask(_compare, original, changed)
            if found is not None:
                times.append(found.cpu)
            answer = "not proved" if found is None else found.answer
            answers[each.kind][answer] += 1
            if answer == "not proved":
                unproved[each.file] += 1
    kinds = [*sorted(answers), "all"]
    answers["all"] = sum(answers.values(), Counter())
    show(
        f"Single changes of {len(rules)} shipped rules, {options.seconds:g} s for each",
        ["", "told apart by a replayed payment", "proved equal", "not proved", "refused before"],
        [
            [
                kind,
                *(answers[kind][each] for each in ("refuted", "proved", "not proved", "refused")),
            ]
            for kind in kinds
        ],
    )
    show(
        "Processor time of a comparison, ms",
        ["median", "19 of 20", "longest"],
        [
            [
                f"{value * 1000:.0f}"
                for value in (median(times), quantiles(times, n=20)[-1], max(times))
            ]
        ],
    )
    for file, count in unproved.most_common():
        print(f"not proved: {count} of {file}")


def _compare(original: Rule, changed: Rule, *, seconds: float) -> _Compared:
    begun = time.process_time()
    found = compare_programs(original, changed, "condition", Thresholds(), seconds=seconds)
    return _Compared(found.answer, time.process_time() - begun)


def shipped_rules() -> Iterator[tuple[str, Rule]]:
    library = library_of([SHIPPED])
    for path in rule_files([SHIPPED]):
        program = load_file(path, library).program
        if isinstance(program, Rule):
            yield str(path), program


def texts(rules: dict[str, Rule]) -> Iterator[tuple[str, str]]:
    for path in rules:
        yield path, Path(path).read_text()


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Yield every single change of what decides; tests and promises are left alone."""
    text = _TESTS.sub("", text).rstrip() + "\n"
    begin = text.find("\n  ")
    for found in _TOKEN.finditer(text, max(0, begin)):
        kind, old = found.lastgroup, found.group()
        if kind is None or kind == "skipped":
            continue
        for new in _changes(kind, old):
            yield Mutant(file, kind, text[: found.start()] + new + text[found.end() :])
    conditions = list(_CONDITION.finditer(text))
    for one, other in pairwise(conditions):
        swapped = other.group() + one.group()
        yield Mutant(file, "order", text[: one.start()] + swapped + text[other.end() :])


def _changes(kind: str, old: str) -> tuple[str, ...]:
    match kind:
        case "comparison":
            return _COMPARISONS[old]
        case "operator":
            return (_OPERATORS[old],)
        case "unit":
            count = int(old[:-1])
            return (f"{2 * count}{old[-1]}", *(f"{count}{unit}" for unit in _UNITS[old[-1]]))
        case "test":
            return (_TESTS_OF_VALUES[old],)
        case "action":
            return tuple(each for each in ("allow", "challenge", "deny") if each != old)[:1]
        case _:
            decimals = len(old.partition(".")[2])
            step = 10**-decimals
            near = (float(old) + step, float(old) - step, 2 * float(old), 10 * float(old))
            return tuple(f"{each:.{decimals}f}" for each in near)


if __name__ == "__main__":
    main()
