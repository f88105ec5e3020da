"""The checker: what a file says -> the checked program, with all that is to be said about it."""

from tollkeeper.grammar.checker.files import Checked, check
from tollkeeper.grammar.checker.scope import Known

__all__ = ["Checked", "Known", "check"]
