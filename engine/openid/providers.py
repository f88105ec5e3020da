"""The OpenID Connect providers by account, from a file of the operator's.

They are not among an account's settings: a person who could change them could sign in as any user,
with any role.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tollkeeper.engine.registry.roles import Role

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OpenIdError(Exception):
    """The file can't be used; the message is for a person."""


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider that signs people in to one account.

    `address` is the console's, as browsers reach it. `client_secret_file` holds the secret; a
    public client has none. The claim `name_claim` gives the user's name; an `email` must be
    verified. `roles` maps each role to values of the claim `role_claim`; the first role that
    matches counts. Without it, only existing users can sign in.
    """

    issuer: str
    client_id: str
    address: str
    title: str = ""
    client_secret_file: str | None = None
    name_claim: str = "email"
    role_claim: str = "groups"
    roles: dict[Role, list[str]] = {}
    scopes: str = "openid email profile"

    def secret(self) -> str | None:
        """Raises `OpenIdError`."""
        if self.client_secret_file is None:
            return None
        try:
            return Path(self.client_secret_file).read_text().strip()
        except OSError as error:
            message = f"`{self.client_secret_file}` can't be read: {error.strerror}"
            raise OpenIdError(message) from None

    def returns_to(self) -> str:
        """The URL that the provider redirects people back to."""
        return f"{self.address.rstrip('/')}/console/sign-in/openid"


def read_providers(path: Path) -> Mapping[str, Provider]:
    """The providers by the account that they sign people in to. Raises `OpenIdError`."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        providers = msgspec.convert(found, dict[str, Provider])
    except (OSError, ValueError) as error:
        raise OpenIdError(f"`{path}` can't be read: {error}") from None
    for account, provider in providers.items():
        for name, address in (("issuer", provider.issuer), ("address", provider.address)):
            parts = urlsplit(address)
            if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
                message = f"`{path}`, {account}.{name}: `{address}` is not an address of https"
                raise OpenIdError(message)
        provider.secret()
    return providers
