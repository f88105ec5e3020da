"""The reasons why an operation was refused; each violation names the place and says why in one
line."""

from __future__ import annotations

from collections.abc import Sequence

from tollkeeper.engine.intake.violations import Violation, ViolationType


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The operation was refused, and nothing was changed; `violations` say why."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = violations


class Invalid(Refused):
    """The request breaks rules; `violations` has all of them."""

    @classmethod
    def at(cls, field: str, type_: ViolationType, message: str) -> Invalid:
        """A request that breaks one rule."""
        return cls([Violation(field, type_, message)])


class Forbidden(Refused):
    """The requester may not do this."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__([Violation(field, "forbidden", message)])


class NotFound(Refused):
    def __init__(self, field: str, message: str) -> None:
        super().__init__([Violation(field, "not_found", message)])


class Conflict(Refused):
    """The request contradicts the present state."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__([Violation(field, "conflict", message)])
