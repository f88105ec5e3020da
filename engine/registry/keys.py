"""API keys: shown once, kept only as their SHA-256 (docs/api.md, "Authentication")."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.registry.changes import KeyCreated, KeyRevoked
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.scopes import KEY_SCOPES
from tollkeeper.engine.registry.state import Account, ApiKey, Configuration

PREFIX = "toll_"
TEST_PREFIX = "toll_test_"
"""Marks the keys of test accounts, so that people can tell them from others."""
MAX_KEY_NAME = 64
MAX_KEYS = 1000
"""How many keys of an account are not revoked."""
_SECRET_BYTES = 40
_ID_LENGTH = 8
# Copied for each key: OpenSSL takes longer to look the algorithm up than to hash a key.
_SHA256 = hashlib.sha256()
# The random part of a secret contains no dot.
_SHARD_MARK = re.compile(r"(?:[a-z]+_)*([1-9][0-9]{0,2})\.")


def shard_mark(shard: int) -> str:
    """The mark of a shard in the secrets of its accounts, after the prefix; empty for the first
    shard."""
    return "" if shard == 1 else f"{shard}."


def shard_named(secret: str) -> int:
    """The shard of the account that a key or another secret belongs to."""
    mark = _SHARD_MARK.match(secret)
    return 1 if mark is None else int(mark[1])


def create_key(
    account: Account,
    scopes: Sequence[str],
    name: str = "",
    expires_at: int | None = None,
    owner: str = "",
    shard: int = 1,
) -> tuple[str, KeyCreated]:
    """A new key, which is shown only now, and its creation; `expires_at` in µs.

    Its first eight random characters are its id; at least 256 bits stay secret. `owner` is one of
    the users, or empty. Raises `Invalid` with all violations, `Conflict` when the account has as many
    keys as it may.
    """
    violations = _check_scopes(scopes)
    if len(name) > MAX_KEY_NAME or not name.isprintable():
        message = f"a key's name has at most {MAX_KEY_NAME} characters, none of them a control"
        violations.append(Violation("key.name", "invalid_format", message))
    if owner and owner not in account.users:
        message = f"there is no user `{owner}`"
        violations.append(Violation("key.owner", "invalid_value", message))
    if violations:
        raise Invalid(violations)
    if sum(each.revoked_at is None for each in account.keys.values()) >= MAX_KEYS:
        raise Conflict("key", f"an account has at most {MAX_KEYS} keys that are not revoked")
    prefix = (PREFIX if account.live is None else TEST_PREFIX) + shard_mark(shard)
    while True:
        key = prefix + secrets.token_urlsafe(_SECRET_BYTES)
        id_ = key[: len(prefix) + _ID_LENGTH]
        if id_ not in account.keys:
            chosen = tuple(scope for scope in KEY_SCOPES if scope in scopes)
            return key, KeyCreated(id_, hash_key(key), chosen, name, expires_at, owner)


def revoke_key(account: Account, id_: str) -> KeyRevoked:
    """Raises `NotFound`, and `Conflict` for a key that is revoked already."""
    key = account.keys.get(id_)
    if key is None:
        raise NotFound("key", f"there is no key `{id_}`")
    if key.revoked_at is not None:
        raise Conflict("key", f"the key `{id_}` is revoked already")
    return KeyRevoked(id_)


def authenticate(state: Configuration, presented: str, now: int) -> ApiKey | None:
    """The key that was presented, if it is valid at `now` (µs), else None."""
    return find_valid_key(state, hash_key(presented), now)


def find_valid_key(state: Configuration, hash_: bytes, now: int) -> ApiKey | None:
    """The key with this hash, if it is valid at `now` (µs), else None."""
    key = state.keys.get(hash_)
    # The look-up sees only hashes; the final comparison takes constant time.
    if key is None or not hmac.compare_digest(key.hash, hash_):
        return None
    return key if is_valid(key, now) else None


def is_valid(key: ApiKey, now: int) -> bool:
    """Whether the key is valid at `now` (µs)."""
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


def _check_scopes(scopes: Sequence[str]) -> list[Violation]:
    unknown = [scope for scope in scopes if scope not in KEY_SCOPES]
    if scopes and not unknown:
        return []
    allowed = ", ".join(f"`{scope}`" for scope in KEY_SCOPES)
    named = ", ".join(f"`{scope}`" for scope in unknown)
    message = f"the scopes are {allowed}" + (f", not {named}" if named else "")
    return [Violation("key.scopes", "invalid_value", message)]


def hash_key(key: str) -> bytes:
    """The SHA-256 of a key, or of the secret of a session, a link or a sign-in: all that is stored."""
    hashed = _SHA256.copy()
    hashed.update(key.encode(errors="surrogatepass"))
    return hashed.digest()
