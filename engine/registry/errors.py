"""Why an operation refused what was asked; each names the place and says it in one line."""

from __future__ import annotations

from collections.abc import Sequence

from tollkeeper.engine.intake.violations import Violation


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """Nothing was changed; `violations` say why."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(violation.message for violation in violations))
        self.violations = violations


class Invalid(Refused):
    """What was asked breaks rules; all of them are named."""


class Forbidden(Refused):
    """What was asked is somebody else's to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__([Violation(field, "forbidden", message)])


class NotFound(Refused):
    def __init__(self, field: str, message: str) -> None:
        super().__init__([Violation(field, "not_found", message)])


class Conflict(Refused):
    """What was asked no longer fits what is there."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__([Violation(field, "conflict", message)])
