"""A shipped file with what its own tests came to, run once for all that is asked about them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tollkeeper.engine.offline.testing.blocks import run_test
from tollkeeper.engine.offline.testing.files import RuleFile, library_of, load_file
from tollkeeper.engine.offline.testing.outcomes import UnmetExpectation
from tollkeeper.engine.programs.load import SHIPPED
from tollkeeper.grammar.program import Definitions

LIBRARY = library_of([SHIPPED])


@cache
def run_file(path: Path) -> tuple[RuleFile, tuple[UnmetExpectation, ...]]:
    file = load_file(path, LIBRARY)
    tests = () if isinstance(file.program, Definitions) else file.program.tests
    return file, tuple(run_test(file, test) for test in tests)
