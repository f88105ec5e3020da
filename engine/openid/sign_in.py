"""Sign a person in by OpenID Connect: the code flow, with PKCE, a state and a nonce.

The state between its two halves is kept in memory. It can be used once, within ten minutes, by the
browser that began it.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.openid.id_token import (
    TokenError,
    UnknownKeyError,
    check_token,
    role_in,
    user_name_in,
)
from tollkeeper.engine.openid.issuer import IssuerMetadata, Issuers, UnreachableError, ask
from tollkeeper.engine.openid.providers import Provider
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.publish.users import PutUser
from tollkeeper.engine.registry.errors import NotFound, Refused
from tollkeeper.engine.registry.keys import hash_key, shard_mark
from tollkeeper.engine.registry.sessions import SignInGrant
from tollkeeper.engine.runtime import Engine

ATTEMPT_LASTS = HOUR // 6
"""How long an attempt is valid (µs)."""
MAX_ATTEMPTS = 10_000
"""The most attempts at once; the oldest is dropped for a new one."""
OPENID_AUTHOR = "openid"
"""The author, in the audit log, of roles that follow from claims."""
_SECRET_BYTES = 32
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in that has been begun; `ends_at` in µs."""

    account: str
    state: str
    nonce: str
    verifier: str
    ends_at: int


@dataclass(frozen=True, slots=True)
class Departure:
    """Where the browser is sent, and the secret that it must present when it comes back."""

    address: str
    attempt: str


@dataclass(slots=True)
class OpenId:
    """The providers by account, their cached metadata, and open attempts by their secret's hash."""

    providers: Mapping[str, Provider] = field(default_factory=dict)
    issuers: Issuers = field(default_factory=Issuers)
    attempts: dict[bytes, SignInAttempt] = field(default_factory=dict)


class _Tokens(Struct, frozen=True):
    id_token: str


async def begin_sign_in(openid: OpenId, account: str, now: int, shard: int = 1) -> Departure:
    """Begin a sign-in to an account of this shard.

    Raises `NotFound` where the account has no provider, `UnreachableError`."""
    provider = openid.providers.get(account)
    if provider is None:
        raise NotFound("account", f"nobody signs in to `{account}` by OpenID")
    metadata = await openid.issuers.metadata(provider.issuer)
    secret, state, nonce, verifier = (secrets.token_urlsafe(_SECRET_BYTES) for _ in range(4))
    secret = shard_mark(shard) + secret
    if len(openid.attempts) >= MAX_ATTEMPTS:
        del openid.attempts[next(iter(openid.attempts))]
    attempt = SignInAttempt(account, state, nonce, verifier, now + ATTEMPT_LASTS)
    openid.attempts[hash_key(secret)] = attempt
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": provider.returns_to(),
        "scope": provider.scopes,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
    }
    joint = "&" if "?" in metadata.authorization_endpoint else "?"
    return Departure(f"{metadata.authorization_endpoint}{joint}{urlencode(query)}", secret)


async def finish_sign_in(
    engine: Engine, openid: OpenId, secret: str, state: str, code: str, issuer: str | None, now: int
) -> SignInGrant:
    """Finish a sign-in; returns who signs in. Raises `TokenError`, `UnreachableError`."""
    attempt = openid.attempts.pop(hash_key(secret), None)
    if attempt is None or attempt.ends_at <= now:
        raise TokenError("nobody is under way with this secret")
    if not secrets.compare_digest(attempt.state.encode(), state.encode()):
        raise TokenError("it is the answer to another sign-in")
    provider = openid.providers[attempt.account]
    if issuer is not None and issuer != provider.issuer:
        raise TokenError("it is the answer of another issuer")
    metadata = await openid.issuers.metadata(provider.issuer)
    token = await _exchange(provider, metadata, code, attempt.verifier)
    claims = await _check(openid, provider, token, attempt.nonce, now // _SECOND)
    name = user_name_in(claims, provider)
    return await _let_in(engine, attempt.account, provider, name, role_in(claims, provider))


async def _check(
    openid: OpenId, provider: Provider, token: str, nonce: str, now: int
) -> Mapping[str, Any]:
    """The claims of a valid token; reads the provider's keys again if none of those known signed
    it."""
    keys = await openid.issuers.keys(provider.issuer)
    try:
        return check_token(token, keys, provider, nonce, now)
    except UnknownKeyError:
        newer = await openid.issuers.newer_keys(provider.issuer)
        if newer is None:
            raise
    return check_token(token, newer, provider, nonce, now)


def challenge_of(verifier: str) -> str:
    """The challenge of PKCE (RFC 7636, S256)."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


async def _exchange(provider: Provider, metadata: IssuerMetadata, code: str, verifier: str) -> str:
    """The ID token for the code, from the provider itself. Raises `UnreachableError`."""
    secret = provider.secret()
    data = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": provider.returns_to(),
        "code_verifier": verifier,
    }
    auth = None
    if secret is None:
        data["client_id"] = provider.client_id
    elif "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
        auth = (provider.client_id, secret)
    else:
        data |= {"client_id": provider.client_id, "client_secret": secret}
    answer = await ask("POST", metadata.token_endpoint, data, auth)
    try:
        return msgspec.json.decode(answer, type=_Tokens).id_token
    except msgspec.MsgspecError:
        raise UnreachableError("its answer has no ID token") from None


async def _let_in(
    engine: Engine, account_name: str, provider: Provider, name: str, role: str | None
) -> SignInGrant:
    number = engine.state.numbers.get(account_name)
    if number is None:
        raise TokenError(f"there is no account `{account_name}`")
    if provider.roles:
        if role is None:
            raise TokenError("none of its groups has a role")
        try:
            await PutUser(account_name, name, role).perform(engine, OPENID_AUTHOR, unwatched)
        except Refused as refused:
            raise TokenError(f"the user can't be made: {refused}") from None
    if name not in engine.state.accounts[number].users:
        raise TokenError("it is of nobody who is a user here")
    return SignInGrant(number, name)
