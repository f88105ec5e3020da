"""Sessions: keys that a sign-in makes, with an owner and an end; kept in memory, by their hash.

A start of the service ends them all: users are in the journal, and sign in again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.registry.scopes import KeyScope, granted
from tollkeeper.engine.registry.state import Account, AccountUser, ApiKey, Configuration
from tollkeeper.engine.registry.users import key_of_user

SESSION_PREFIX = "tolls_"
LONGEST_SESSION = 12 * HOUR
"""How long a session lasts at most (µs)."""
LONGEST_IDLE = HOUR // 2
"""How long a session lasts with no request (µs)."""
LINK_LASTS = HOUR // 6
"""How long a link may be followed (µs)."""
MAX_SESSIONS = 10_000
"""Sessions and links held at once, each; the one that ends first makes room."""
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Session:
    """`key` is what the session may do and for whom. `user` is who signed in, None for an owner
    whom the account does not know; `parent` the id of the key that signed in, if one did.
    `ends_at` and `idle_at` in µs.
    """

    key: ApiKey
    user: str | None
    parent: str | None
    ends_at: int
    idle_at: int


@dataclass(frozen=True, slots=True)
class SignInLink:
    """Whom following the link signs in: a user when `scopes` is None, as what they are then; else
    an owner with these. It ends at `ends_at` (µs).
    """

    account: int
    owner: str
    scopes: tuple[KeyScope, ...] | None
    ends_at: int


@dataclass(slots=True)
class Sessions:
    """The open sessions and links, by the SHA-256 of what the person holds."""

    _open: dict[bytes, Session] = field(default_factory=dict)
    _links: dict[bytes, SignInLink] = field(default_factory=dict)

    def make_link(
        self, account: int, owner: str, scopes: Sequence[KeyScope] | None, now: int
    ) -> str:
        """A code that signs `owner` in once, within `LINK_LASTS`; a user where `scopes` is None."""
        code = secrets.token_urlsafe(_SECRET_BYTES)
        _make_room(self._links)
        self._links[_hash(code)] = SignInLink(
            account, owner, None if scopes is None else tuple(scopes), now + LINK_LASTS
        )
        return code

    def follow_link(self, state: Configuration, code: str, now: int) -> tuple[str, Session] | None:
        """A session for a code that was not used before, None for any other."""
        link = self._links.pop(_hash(code), None)
        if link is None or link.ends_at <= now:
            return None
        if link.scopes is None:
            account = state.accounts.get(link.account)
            user = None if account is None else account.users.get(link.owner)
            return None if account is None or user is None else self.start_user(account, user, now)
        key = ApiKey(
            id=link.owner,
            account=link.account,
            hash=b"",
            name=link.owner,
            scopes=link.scopes,
            granted=granted(link.scopes),
            created_at=now,
            created_by=link.owner,
        )
        return self._start(key, None, None, now)

    def start(self, key: ApiKey, now: int) -> tuple[str, Session]:
        """A session that may do what `key` may, as long as that is good."""
        return self._start(key, None, key.id, now)

    def start_user(self, account: Account, user: AccountUser, now: int) -> tuple[str, Session]:
        """A session that may do what the user's role says, at each moment."""
        return self._start(key_of_user(account, user), user.name, None, now)

    def find(self, state: Configuration, presented: str, now: int) -> Session | None:
        """The session that was presented, kept from going idle; None when it is over."""
        hash_ = _hash(presented)
        session = self._open.get(hash_)
        if session is None:
            return None
        key = _key_now(session, state, now)
        if min(session.ends_at, session.idle_at) <= now or key is None:
            del self._open[hash_]
            return None
        self._open[hash_] = renewed = replace(session, key=key, idle_at=now + LONGEST_IDLE)
        return renewed

    def end(self, presented: str) -> bool:
        """End the session that was presented; whether it is one."""
        return self._open.pop(_hash(presented), None) is not None

    def _start(
        self, key: ApiKey, user: str | None, parent: str | None, now: int
    ) -> tuple[str, Session]:
        secret = SESSION_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        session = Session(key, user, parent, now + LONGEST_SESSION, now + LONGEST_IDLE)
        _make_room(self._open)
        self._open[_hash(secret)] = session
        return secret, session


def _key_now(session: Session, state: Configuration, now: int) -> ApiKey | None:
    """What the session may do now; None when its account, user or key is not there any more."""
    account = state.accounts.get(session.key.account)
    if account is None:
        return None
    if session.user is not None:
        user = account.users.get(session.user)
        return None if user is None else key_of_user(account, user)
    if session.parent is None:
        return session.key
    parent = account.keys.get(session.parent)
    is_good = (
        parent is not None
        and parent.revoked_at is None
        and (parent.expires_at is None or now < parent.expires_at)
    )
    return session.key if is_good else None


def _make_room(held: dict[bytes, Session] | dict[bytes, SignInLink]) -> None:
    """What was made first ends first."""
    if len(held) >= MAX_SESSIONS:
        del held[next(iter(held))]


def _hash(presented: str) -> bytes:
    return hashlib.sha256(presented.encode(errors="surrogatepass")).digest()
