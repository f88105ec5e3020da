"""The operator's file of OpenID providers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tollkeeper.engine.openid.providers import OpenIdError, read_providers

GOOD = """
[shop]
issuer = "https://login.example"
client_id = "toll"
client_secret_file = "{secret}"
address = "https://risk.example/"

[shop.roles]
lead = ["risk-leads"]
"""


def read(tmp_path: Path, text: str) -> object:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    path = tmp_path / "openid.toml"
    path.write_text(text.replace("{secret}", str(secret)))
    return read_providers(path)


def test_the_secret_is_read_from_its_own_file(tmp_path: Path) -> None:
    providers = read(tmp_path, GOOD)
    provider = providers["shop"]  # type: ignore[index]
    assert provider.secret() == "s3cret"
    assert provider.returns_to() == "https://risk.example/console/sign-in/openid"


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("https://login.example", "http://login.example", "shop.issuer"),
        ("https://risk.example/", "http://risk.example/", "shop.address"),
        ("client_id", "client", "client"),
        ("lead =", "boss =", "boss"),
        ("{secret}", "/nowhere", "/nowhere"),
        ("[shop]", "[shop", "can't be read"),
    ],
)
def test_what_is_wrong_with_the_file_is_named(
    tmp_path: Path, old: str, new: str, named: str
) -> None:
    with pytest.raises(OpenIdError, match=named):
        read(tmp_path, GOOD.replace(old, new))
