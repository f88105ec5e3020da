"""Validate an ID token as OpenID Connect Core 3.1.3.7 says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from tollkeeper.engine.openid.providers import Provider

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

SKEW_S: Final = 60
"""The tolerated difference (s) between the provider's clock and ours."""
ALGORITHMS: Final = ("RS256", "PS256", "ES256", "Ed25519", "EdDSA")
"""Asymmetric signatures only: a shared secret, or no signature, proves nothing."""


class TokenError(Exception):
    """The token is not accepted; the message is for the log and has no personal data."""


class UnknownKeyError(TokenError):
    """None of the known keys signed it: the provider may have changed its keys."""


def check_token(
    token: str, keys: KeySet, provider: Provider, nonce: str, now: int
) -> Mapping[str, Any]:
    """The claims of a token that was signed with one of the keys for this sign-in.

    `now` in seconds. Raises `TokenError`, `UnknownKeyError`.
    """
    from joserfc import jwt
    from joserfc.errors import JoseError

    try:
        claims = jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
    except (JoseError, ValueError, TypeError) as error:
        raise UnknownKeyError(f"it is not signed as it must be: {type(error).__name__}") from None
    if not isinstance(claims, dict):
        raise TokenError("it has no claims")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != provider.issuer:
        raise TokenError("it is of another issuer")
    if provider.client_id not in audiences:
        raise TokenError("it is for another client")
    if len(audiences) > 1 and claims.get("azp") != provider.client_id:
        raise TokenError("it was given to another client")
    if claims.get("nonce") != nonce:
        raise TokenError("it is of another sign-in")
    if _seconds(claims, "exp") <= now - SKEW_S:
        raise TokenError("it is over")
    if _seconds(claims, "iat") > now + SKEW_S:
        raise TokenError("it is of the future")
    if "nbf" in claims and _seconds(claims, "nbf") > now + SKEW_S:
        raise TokenError("it does not hold yet")
    return claims


def user_name_in(claims: Mapping[str, Any], provider: Provider) -> str:
    """The user's name. Raises `TokenError`."""
    name = claims.get(provider.name_claim)
    if not isinstance(name, str) or not name:
        raise TokenError(f"it has no claim `{provider.name_claim}`")
    if provider.name_claim == "email":
        if claims.get("email_verified") is not True:
            raise TokenError("its address of e-mail is not verified")
        return name.lower()
    return name


def role_in(claims: Mapping[str, Any], provider: Provider) -> str | None:
    """The role that the provider's groups give, None where they give none."""
    held = claims.get(provider.role_claim)
    values = {
        each for each in (held if isinstance(held, list) else [held]) if isinstance(each, str)
    }
    return next((role for role, named in provider.roles.items() if values & {*named}), None)


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError(f"it has no claim `{name}`")
    return value
