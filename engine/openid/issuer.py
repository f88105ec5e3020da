"""A provider's metadata: its endpoints, and the keys it signs with."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Final

import httpx
import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

PROVIDER_PATIENCE_S: Final = 10.0
KNOWN_S: Final = 3600.0
"""How long (s) a provider's metadata and keys are cached."""
ANEW_S: Final = 30.0
"""The shortest time (s) between two requests for keys because of a token that none of them signed.
"""
MOST_BYTES: Final = 2**20


class UnreachableError(Exception):
    """A provider did not answer as the standard requires; the message is for the log."""


class IssuerMetadata(Struct, frozen=True):
    """The members that we need of the metadata (OpenID Connect Discovery 1.0)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


@dataclass(frozen=True, slots=True)
class KnownIssuer:
    """Cached metadata and keys, and when they were read (seconds of a monotonic clock)."""

    metadata: IssuerMetadata
    read_at: float
    keys: KeySet | None = None
    keys_at: float = 0.0


@dataclass(slots=True)
class Issuers:
    """The cache of providers' metadata and keys, by issuer."""

    _cached: dict[str, KnownIssuer] = field(default_factory=dict)

    def learn(self, metadata: IssuerMetadata) -> None:
        """Cache metadata that was read just now."""
        self._cached[metadata.issuer] = KnownIssuer(metadata, monotonic())

    async def metadata(self, issuer: str) -> IssuerMetadata:
        """Raises `UnreachableError`."""
        known = self._cached.get(issuer)
        if known is None or known.read_at + KNOWN_S < monotonic():
            url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            found = _read(await ask("GET", url))
            if found.issuer != issuer:
                raise UnreachableError(f"`{url}` describes another issuer")
            self.learn(found)
            return found
        return known.metadata

    async def keys(self, issuer: str) -> KeySet:
        """The keys that the issuer signs with. Raises `UnreachableError`."""
        await self.metadata(issuer)
        known = self._cached[issuer]
        if known.keys is None or known.keys_at + KNOWN_S < monotonic():
            return await self._read_keys(known)
        return known.keys

    async def newer_keys(self, issuer: str) -> KeySet | None:
        """The keys, read again; None when that was done within `ANEW_S`, so that bad tokens do not
        lead to a request each. Raises `UnreachableError`.
        """
        await self.metadata(issuer)
        known = self._cached[issuer]
        return None if known.keys_at + ANEW_S > monotonic() else await self._read_keys(known)

    async def _read_keys(self, known: KnownIssuer) -> KeySet:
        keys = _key_set(await ask("GET", known.metadata.jwks_uri))
        self._cached[known.metadata.issuer] = replace(known, keys=keys, keys_at=monotonic())
        return keys


@cache
def _trusted() -> ssl.SSLContext:
    """Whom httpx trusts; read once, as reading it holds the event loop up."""
    return httpx.create_ssl_context()


async def ask(
    method: str,
    url: str,
    data: dict[str, str] | None = None,
    auth: tuple[str, str] | None = None,
) -> bytes:
    """The body of a provider's successful response. Raises `UnreachableError`."""
    try:
        async with (
            httpx.AsyncClient(verify=_trusted(), timeout=PROVIDER_PATIENCE_S, auth=auth) as client,
            client.stream(method, url, data=data) as answer,
        ):
            body = b""
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise UnreachableError(f"`{url}` answers too much")
    except httpx.HTTPError as error:
        raise UnreachableError(f"`{url}` can't be asked: {type(error).__name__}") from None
    if answer.status_code != httpx.codes.OK:
        raise UnreachableError(f"`{url}` answers {answer.status_code}")
    return body


def _key_set(body: bytes) -> KeySet:
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        return KeySet.import_key_set(msgspec.json.decode(body))
    except (JoseError, msgspec.MsgspecError, ValueError, TypeError, KeyError) as error:
        raise UnreachableError(f"its keys can't be read: {type(error).__name__}") from None


def _read(body: bytes) -> IssuerMetadata:
    try:
        return msgspec.json.decode(body, type=IssuerMetadata)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"its description can't be read: {error}") from None
