"""API keys: shown once, kept only as their SHA-256 (docs/api.md, "Authentication")."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import get_args

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.registry.changes import KeyCreated, KeyRevoked, KeyScope
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.state import Account, ApiKey, Configuration

PREFIX = "toll_"
SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)
_SECRET_BYTES = 40
_ID_LENGTH = len(PREFIX) + 8


def create_key(account: Account, scopes: Sequence[str]) -> tuple[str, KeyCreated]:
    """The key, to be shown this once, and its creation.

    Its first eight random characters are its id; 256 bits and more stay secret. Raises `Invalid`
    for a scope that is none.
    """
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        allowed = ", ".join(f"`{scope}`" for scope in SCOPES)
        named = ", ".join(f"`{scope}`" for scope in unknown)
        message = f"the scopes are {allowed}" + (f", not {named}" if named else "")
        raise Invalid([Violation("key.scopes", "invalid_value", message)])
    while True:
        key = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        if key[:_ID_LENGTH] not in account.keys:
            chosen = tuple(scope for scope in SCOPES if scope in scopes)
            return key, KeyCreated(key[:_ID_LENGTH], _hash(key), chosen)


def revoke_key(account: Account, id_: str) -> KeyRevoked:
    """Raises `NotFound`, and `Conflict` for a key that is revoked already."""
    key = account.keys.get(id_)
    if key is None:
        raise NotFound("key", f"there is no key `{id_}`")
    if key.revoked_at is not None:
        raise Conflict("key", f"the key `{id_}` is revoked already")
    return KeyRevoked(id_)


def authenticate(state: Configuration, presented: str) -> ApiKey | None:
    """The good key that was presented, or None."""
    hash_ = _hash(presented)
    key = state.keys.get(hash_)
    # The lookup sees hashes only; comparing again takes constant time.
    return key if key is not None and hmac.compare_digest(key.hash, hash_) else None


def allows(key: ApiKey, scope: KeyScope) -> bool:
    """Whether the key may do what needs `scope`; `admin` may do all."""
    return scope in key.scopes or "admin" in key.scopes


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()
