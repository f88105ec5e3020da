"""The checker: turns a parsed file into a checked program, with all diagnostics."""

from tollkeeper.grammar.checker.files import CheckOutcome, check
from tollkeeper.grammar.checker.scope import KnownNames

__all__ = ["CheckOutcome", "KnownNames", "check"]
