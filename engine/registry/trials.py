"""Trials: a shadow is evaluated beside the active version, a rollout decides part of the payments.

Only rules and scorecards can be on trial.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.registry.changes import (
    RolloutCleared,
    RolloutKey,
    RolloutSet,
    ShadowCleared,
    ShadowSet,
)
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.state import Account, Version
from tollkeeper.engine.registry.versions import (
    NOUNS,
    active_version,
    find_lineage,
    find_version,
    was_active,
)

Decider: TypeAlias = Literal["rule", "scorecard"]
ROLLOUT_KEYS: tuple[RolloutKey, ...] = get_args(RolloutKey)


def set_shadow(account: Account, kind: Decider, name: str, number: int) -> ShadowSet:
    """Raises `NotFound`."""
    find_version(account, kind, name, number)
    return ShadowSet(kind, name, number)


def clear_shadow(account: Account, kind: Decider, name: str) -> ShadowCleared:
    """Raises `NotFound`, also for a name without a shadow."""
    if find_lineage(account, kind, name).shadow is None:
        raise NotFound("shadow", f"{NOUNS[kind]} `{name}` has no shadow")
    return ShadowCleared(kind, name)


def shadow_version(account: Account, kind: Decider, name: str) -> Version | None:
    """The version to evaluate beside the active one, None when there is none."""
    lineage = account.files.get((kind, name))
    if lineage is None or lineage.shadow is None:
        return None
    return lineage.versions[lineage.shadow - 1]


def set_rollout(
    account: Account, kind: Decider, name: str, number: int, percent: int, by: str
) -> RolloutSet:
    """Let version `number` decide `percent` (0 to 100) of a published name's payments.

    Raises `NotFound`, `Invalid`, and `Conflict` for a name that is not published.
    """
    violations = []
    if not 0 <= percent <= 100:
        violations.append(Violation("percent", "out_of_range", "a percentage is from 0 to 100"))
    if by not in ROLLOUT_KEYS:
        keys = ", ".join(f"`{key}`" for key in ROLLOUT_KEYS)
        violations.append(Violation("by", "invalid_value", f"a rollout goes by one of {keys}"))
    if violations:
        raise Invalid(violations)
    find_version(account, kind, name, number)
    if active_version(account, kind, name) is None:
        raise Conflict(
            "name",
            f"{NOUNS[kind]} `{name}` is not published: a rollout goes beside an active version",
        )
    return RolloutSet(kind, name, number, percent, by)  # type: ignore[arg-type]


def has_decided(account: Account, version: Version) -> bool:
    """Whether the version was active since its name was last unpublished, or is rolled out now: its
    tests have run before.
    """
    rollout = find_lineage(account, version.kind, version.name).rollout
    is_out = rollout is not None and rollout.version == version.number
    return is_out or was_active(account, version)


def clear_rollout(account: Account, kind: Decider, name: str) -> RolloutCleared:
    """Raises `NotFound`, also for a name without a rollout."""
    if find_lineage(account, kind, name).rollout is None:
        raise NotFound("rollout", f"{NOUNS[kind]} `{name}` has no rollout")
    return RolloutCleared(kind, name)
