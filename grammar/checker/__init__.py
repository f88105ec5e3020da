"""The checker: what a file says -> the checked program, with all that is to be said about it."""

from tollkeeper.grammar.checker.files import CheckOutcome, check
from tollkeeper.grammar.checker.scope import KnownNames

__all__ = ["CheckOutcome", "KnownNames", "check"]
