"""The definitions that come with the service: any file may `use` them, none has to publish them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.grammar.checker import KnownNames, check
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.program import Definitions

FOLDER = Path(__file__).parents[2] / "rules" / "definitions"


class ShippedDefinitions(NamedTuple):
    """A file of definitions, with its text."""

    program: Definitions
    text: str


@cache
def shipped_definitions() -> Mapping[str, ShippedDefinitions]:
    """All of them by name."""
    found = {}
    for path in sorted(FOLDER.glob("*.rule")):
        text = path.read_text(encoding="utf-8")
        file = parse(text).file
        assert file is not None
        program = check(file, text, full_vocabulary(), KnownNames()).program
        assert isinstance(program, Definitions)
        found[program.name] = ShippedDefinitions(program, text)
    return found
