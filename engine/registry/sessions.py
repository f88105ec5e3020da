"""Sessions: a sign-in works like a key with an owner and an end; the journal has its hash.

So sessions survive a restart. Links, and when a session was last used, are only in memory.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.registry.changes import SessionStarted
from tollkeeper.engine.registry.keys import hash_key, is_valid, shard_mark
from tollkeeper.engine.registry.scopes import KeyScope, granted_scopes
from tollkeeper.engine.registry.state import ApiKey, Configuration, Session, most_frequent
from tollkeeper.engine.registry.users import key_of_user

SESSION_PREFIX = "tolls_"
LONGEST_SESSION = 12 * HOUR
"""How long a session lasts at most (µs)."""
LONGEST_IDLE = HOUR // 2
"""How long a session lasts with no request (µs)."""
LINK_LASTS = HOUR // 6
"""How long a link is valid (µs)."""
MAX_LINKS = 10_000
"""The most links at once; beyond it, the account with most of them loses its oldest."""
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class SignInGrant:
    """Who signs in: the holder of the key with the id `parent`, an owner with `scopes`, or, with
    both None, the user `owner`.
    """

    account: int
    owner: str
    parent: str | None = None
    scopes: tuple[KeyScope, ...] | None = None


@dataclass(slots=True)
class Sessions:
    """What is in memory about sessions and links, by the SHA-256 of their secret.

    `began_at` (µs) is the service's start: sessions count as used then. `shard` is the journal's.
    """

    began_at: int = 0
    shard: int = 1
    _links: dict[bytes, tuple[SignInGrant, int]] = field(default_factory=dict)
    _used_at: dict[bytes, int] = field(default_factory=dict)

    def make_link(
        self, account: int, owner: str, scopes: Sequence[KeyScope] | None, now: int
    ) -> str:
        """A code that signs `owner` in once, within `LINK_LASTS`; `scopes` is None for a user."""
        code = shard_mark(self.shard) + secrets.token_urlsafe(_SECRET_BYTES)
        if len(self._links) >= MAX_LINKS:
            fullest = most_frequent(held.account for held, _ in self._links.values())
            first = next(
                hash_ for hash_, (held, _) in self._links.items() if held.account == fullest
            )
            del self._links[first]
        held = SignInGrant(account, owner, scopes=None if scopes is None else tuple(scopes))
        self._links[hash_key(code)] = held, now + LINK_LASTS
        return code

    def follow_link(self, code: str, now: int) -> SignInGrant | None:
        """Use a code up; returns who signs in, None for an unknown or used code."""
        link, ends_at = self._links.pop(hash_key(code), (None, 0))
        return link if now < ends_at else None

    def find(self, state: Configuration, presented: str, now: int) -> tuple[Session, ApiKey] | None:
        """The session with this secret, and its scopes as an `ApiKey`; None when it has ended.

        Counts as a use of the session.
        """
        hash_ = hash_key(presented)
        session = state.sessions.get(hash_)
        if session is None or session.ends_at <= now:
            return None
        used_at = self._used_at.get(hash_, max(self.began_at, session.started_at))
        key = key_of_session(state, session, now)
        if key is None or used_at + LONGEST_IDLE <= now:
            return None
        self._used_at[hash_] = now
        if len(self._used_at) > 2 * len(state.sessions):
            self._used_at = {
                each: at for each, at in self._used_at.items() if each in state.sessions
            }
        return session, key


def begin_session(sign_in: SignInGrant, now: int, shard: int = 1) -> tuple[str, SessionStarted]:
    """The secret for the person's browser, and the change that starts the session."""
    secret = SESSION_PREFIX + shard_mark(shard) + secrets.token_urlsafe(_SECRET_BYTES)
    started = SessionStarted(
        hash_key(secret), sign_in.owner, now + LONGEST_SESSION, sign_in.parent, sign_in.scopes
    )
    return secret, started


def key_of_session(state: Configuration, session: Session | SignInGrant, now: int) -> ApiKey | None:
    """The session's present scopes as an `ApiKey`; None when its account, user or key is gone."""
    account = state.accounts.get(session.account)
    if account is None:
        return None
    if session.parent is not None:
        parent = account.keys.get(session.parent)
        return parent if parent is not None and is_valid(parent, now) else None
    if session.scopes is None:
        user = account.users.get(session.owner)
        return None if user is None else key_of_user(account, user)
    return ApiKey(
        id=session.owner,
        account=session.account,
        hash=b"",
        name=session.owner,
        scopes=session.scopes,
        granted=granted_scopes(session.scopes),
        created_at=now,
        created_by=session.owner,
    )
