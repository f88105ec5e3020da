"""An ID token lets in whom it was made for, and nobody else."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from tollkeeper.engine.openid.id_token import SKEW_S, TokenError, check_token, role_in, user_name_in
from tollkeeper.engine.openid.providers import Provider

NOW = 1_789_000_000
KEY = ECKey.generate_key("P-256", {"kid": "one"})
KEYS = KeySet([KEY])
PROVIDER = Provider(
    issuer="https://login.example",
    client_id="toll",
    address="https://risk.example",
    roles={"lead": ["risk-leads"], "analyst": ["risk"]},
)
CLAIMS: dict[str, Any] = {
    "iss": "https://login.example",
    "aud": "toll",
    "sub": "17",
    "nonce": "n",
    "iat": NOW,
    "exp": NOW + 300,
    "email": "Ana@Shop.example",
    "email_verified": True,
}


def signed(key: Any = KEY, algorithm: str = "ES256", **changed: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changed}.items() if value is not None}
    header = {"alg": algorithm, "kid": "one"}
    return jwt.encode(header, claims, key, algorithms=[algorithm])


def by_hand(algorithm: str, sign: Callable[[bytes], bytes]) -> str:
    """A token that no library would make."""
    header = {"alg": algorithm, "kid": "one"}
    parts = b".".join(_packed(json.dumps(part).encode()) for part in (header, CLAIMS))
    return (parts + b"." + _packed(sign(parts))).decode()


def _packed(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def claims_of(token: str) -> Any:
    return check_token(token, KEYS, PROVIDER, "n", NOW)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"aud": ["toll"]},
        {"aud": ["toll", "other"], "azp": "toll"},
        {"exp": NOW - SKEW_S + 1},
        {"iat": NOW + SKEW_S},
    ],
)
def test_a_token_for_this_sign_in_is_good_and_so_is_a_clock_a_little_off(
    changed: dict[str, Any],
) -> None:
    assert user_name_in(claims_of(signed(**changed)), PROVIDER) == "ana@shop.example"


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": None},
        {"aud": ["toll", "other"]},
        {"aud": ["toll", "other"], "azp": "other"},
        {"nonce": "m"},
        {"nonce": None},
        {"exp": NOW - SKEW_S},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"iat": NOW + SKEW_S + 1},
        {"iat": None},
        {"nbf": NOW + SKEW_S + 1},
    ],
)
def test_a_token_of_another_issuer_client_sign_in_or_time_is_refused(
    changed: dict[str, Any],
) -> None:
    with pytest.raises(TokenError):
        claims_of(signed(**changed))


def test_a_token_that_another_key_signed_is_refused() -> None:
    with pytest.raises(TokenError):
        claims_of(signed(ECKey.generate_key("P-256", {"kid": "one"})))


def test_a_token_that_no_key_signed_is_refused() -> None:
    with pytest.raises(TokenError):
        claims_of(by_hand("none", lambda _signed: b""))


def test_a_token_signed_with_the_public_key_as_a_secret_is_refused() -> None:
    secret = KEY.as_pem(private=False)
    with pytest.raises(TokenError):
        claims_of(by_hand("HS256", lambda signed: hmac.digest(secret, signed, "sha256")))


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(TokenError):
        claims_of(signed(RSAKey.generate_key(2048), "RS256"))


@pytest.mark.parametrize("token", ["", ".", "a.b.c", "é", signed()[:-4], signed() + "A" * 9])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(TokenError):
        claims_of(token)


@pytest.mark.parametrize("changed", [{"email": None}, {"email": 1}, {"email_verified": False}])
def test_an_address_that_the_provider_did_not_verify_is_no_name(changed: dict[str, Any]) -> None:
    with pytest.raises(TokenError):
        user_name_in({**CLAIMS, **changed}, PROVIDER)


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["risk"], "analyst"),
        (["risk", "risk-leads"], "lead"),
        ("risk", "analyst"),
        (["others"], None),
        ([{"risk": 1}], None),
        (None, None),
    ],
)
def test_the_first_role_that_a_group_has_is_the_persons(groups: Any, role: str | None) -> None:
    assert role_in({"groups": groups}, PROVIDER) == role
