"""The users of an account: each has a role, and a name that the audit log shows."""

from __future__ import annotations

import re

from tollkeeper.engine.intake.violations import Violation, not_one_of
from tollkeeper.engine.registry.accounts import check_live
from tollkeeper.engine.registry.changes import UserLinkMade, UserRemoved, UserSet
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.keys import PREFIX
from tollkeeper.engine.registry.roles import OF_MERCHANTS, ROLE_NAMES, ROLES
from tollkeeper.engine.registry.scopes import KEY_SCOPES
from tollkeeper.engine.registry.state import Account, AccountUser, ApiKey

MAX_USERS = 1000
MAX_MERCHANTS = 100
"""The most merchants that a limited user may see."""
_LONGEST_MERCHANT = 256
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}(@[A-Za-z0-9.-]{1,190})?")


def set_user(
    account: Account, name: str, role: str, merchants: tuple[str, ...] | None = None
) -> UserSet | None:
    """Add or change a user; None when that changes nothing.

    `merchants` are those that the user sees, empty for all; None leaves them as they were. Raises
    `Invalid` with all violations, `Conflict` when there are too many users.
    """
    check_live(account)
    violations = []
    # The audit log shows users' names and keys' ids in the same place.
    if not _NAME.fullmatch(name) or name.startswith(PREFIX):
        message = "a user's name is an address of e-mail, or letters, digits, `.`, `_`, `+` and `-`"
        violations.append(Violation("user.name", "invalid_format", message))
    chosen = next((each for each in ROLE_NAMES if each == role), None)
    if chosen is None:
        violations.append(not_one_of("user.role", ROLE_NAMES))
    if len(merchants or ()) > MAX_MERCHANTS or not all(map(_is_merchant, merchants or ())):
        message = (
            f"at most {MAX_MERCHANTS} ids of merchants, each of 1 to {_LONGEST_MERCHANT} characters"
        )
        violations.append(Violation("user.merchants", "invalid_value", message))
    if violations or chosen is None:
        raise Invalid(violations)
    known = account.users.get(name)
    seen = merchants if merchants is not None else () if known is None else known.merchants
    if known is None and len(account.users) >= MAX_USERS:
        raise Conflict("user", f"an account has at most {MAX_USERS} users")
    is_same = known is not None and (known.role, known.merchants) == (chosen, seen)
    return None if is_same else UserSet(name, chosen, seen)


def _is_merchant(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_MERCHANT and text.isprintable()


def remove_user(account: Account, name: str) -> UserRemoved:
    """Raises `NotFound`."""
    return UserRemoved(find_user(account, name).name)


def make_user_link(account: Account, name: str) -> UserLinkMade:
    """Raises `NotFound`."""
    check_live(account)
    return UserLinkMade(find_user(account, name).name)


def find_user(account: Account, name: str) -> AccountUser:
    """Raises `NotFound`."""
    user = account.users.get(name)
    if user is None:
        raise NotFound("user", f"there is no user `{name}`")
    return user


def key_of_user(account: Account, user: AccountUser) -> ApiKey:
    """The present scopes of a user's session, as an `ApiKey`."""
    scopes = ROLES[user.role]
    if user.merchants:
        scopes &= OF_MERCHANTS
    return ApiKey(
        id=user.name,
        account=account.number,
        hash=b"",
        name=user.name,
        scopes=tuple(scope for scope in KEY_SCOPES if scope in scopes),
        granted=scopes,
        created_at=user.since,
        created_by=user.set_by,
        merchants=user.merchants,
    )


def person_of(account: Account, author: str) -> str:
    """The person behind the author of a change: for a key, its owner; else the author."""
    key = account.keys.get(author)
    return author if key is None or not key.owner else key.owner


def origin_of(account: Account, author: str) -> str:
    """The person responsible for an author: a key's owner, or else the author who created the key."""
    while (key := account.keys.get(author)) is not None:
        author = key.owner or key.created_by
    return author
