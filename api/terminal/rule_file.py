"""Read a rule file given to a command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tollkeeper.api.terminal.output import NO, err

if TYPE_CHECKING:
    from tollkeeper.engine.programs.source import FileReading


def read_rule_file(file: Path) -> FileReading:
    """Read a rule file; if it has errors, print them and exit with 1."""
    from tollkeeper.engine.offline.rule_files import known_beside
    from tollkeeper.engine.programs.source import read_file
    from tollkeeper.grammar.render import Source, as_rich

    reading = read_file(file.read_bytes(), known_beside([file]))
    if reading.diagnostics:
        err.print(as_rich(Source.of(str(file), reading.text), reading.diagnostics), soft_wrap=True)
    if reading.program is None:
        sys.exit(NO)
    return reading
