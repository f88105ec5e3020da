"""People come in by a real OpenID provider, which runs beside the test."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tollkeeper.api.http.app import public_app, service_of
from tollkeeper.engine.openid import issuer
from tollkeeper.engine.openid.providers import read_providers
from tollkeeper.engine.openid.sign_in import OpenId, challenge_of
from tollkeeper.tests.api.console.conftest import Shop
from tollkeeper.tests.service.process import PATIENCE_S, reserved_port

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:get_jwt_config")]

PEOPLE: dict[str, dict[str, object]] = {
    "1": {"email": "ana@shop.example", "email_verified": True, "groups": ["risk-leads"]},
    "2": {"email": "rui@shop.example", "email_verified": True, "groups": ["sales"]},
    "3": {"email": "bot@shop.example", "email_verified": False, "groups": ["risk-leads"]},
}
CALLBACK = "http://localhost/console/sign-in/openid"


@contextmanager
def provider(port: int) -> Iterator[None]:
    """A provider with keys of its own."""
    # Its modules warn that parts of their own are deprecated.
    with warnings.catch_warnings(record=True):
        from oidc_provider_mock import User, run_server_in_thread
    people = [User(sub=sub, claims=claims) for sub, claims in PEOPLE.items()]
    with run_server_in_thread(port, require_nonce=True, user_claims=people):
        yield


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with reserved_port() as port, provider(port):
        yield port


@pytest.fixture
def idle_port() -> Iterator[int]:
    """A port at which no provider listens yet."""
    with reserved_port() as port:
        yield port


@asynccontextmanager
async def console(
    shop: Shop, port: int, folder: Path, roles: str
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at a console whose people come in by the provider at the port."""
    path, secret = folder / "openid.toml", folder / "secret"
    secret.write_text("a-secret")
    path.write_text(
        f'[shop]\nissuer = "http://localhost:{port}"\nclient_id = "toll"\n'
        f'address = "http://localhost"\ntitle = "Shop"\n'
        f'client_secret_file = "{secret}"\n{roles}'
    )
    openid = OpenId(read_providers(path))
    app = public_app(service_of(shop.service.engine, jobs=shop.service.jobs, openid=openid))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as browser:
        yield browser


LEADS = '[shop.roles]\nlead = ["risk-leads"]\n'


async def depart(browser: httpx.AsyncClient) -> tuple[str, str]:
    """The provider's address that the console leads to, and the cookie that it leaves."""
    page = await browser.get("/console/sign-in")
    assert 'href="/console/sign-in/with/shop"' in page.text
    left = await browser.get("/console/sign-in/with/shop")
    assert left.status_code == 303, left.text
    return left.headers["location"], left.headers["set-cookie"].partition(";")[0]


def agree(address: str, sub: str) -> str:
    """What the person is sent back with, having agreed at the provider."""
    asked = {"sub": sub, "action": "authorize"}
    answer = httpx.post(address, data=asked, timeout=PATIENCE_S)
    assert answer.status_code in (302, 303), answer.text
    location: str = answer.headers["location"]
    assert location.startswith(CALLBACK)
    return location.removeprefix("http://localhost")


async def come_back(browser: httpx.AsyncClient, way: str, cookie: str) -> httpx.Response:
    browser.cookies.clear()
    return await browser.get(way, headers={"cookie": cookie})


def session_in(answer: httpx.Response) -> dict[str, str]:
    cookies = [each.partition(";")[0] for each in answer.headers.get_list("set-cookie")]
    return {"cookie": next(each for each in cookies if each.startswith("__Host-toll=toll"))}


async def test_a_group_of_the_provider_is_a_role_here(
    own_shop: Shop, port: int, tmp_path: Path
) -> None:
    async with console(own_shop, port, tmp_path, LEADS) as browser:
        address, cookie = await depart(browser)
        answer = await come_back(browser, agree(address, "1"), cookie)
        assert (answer.status_code, answer.headers["location"]) == (303, "/console")
        page = await browser.get("/console/changes", headers=session_in(answer))
        assert "ana@shop.example" in page.text
    audit = (await own_shop.service.client.get("/v1/audit")).json()["audit"]
    assert (audit[1]["action"], audit[1]["by"]) == ("user_set", "openid")
    assert audit[1]["detail"] == {"role": "lead", "merchants": []}


async def test_the_way_to_the_provider_has_a_challenge_a_state_and_a_nonce_of_its_own(
    own_shop: Shop, port: int, tmp_path: Path
) -> None:
    async with console(own_shop, port, tmp_path, LEADS) as browser:
        first, second = [parse_qs(urlsplit((await depart(browser))[0]).query) for _ in range(2)]
    assert first["code_challenge_method"] == ["S256"]
    assert first["redirect_uri"] == [CALLBACK]
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name][0]) >= 43
        assert first[name] != second[name]
    # The example of RFC 7636, appendix B.
    assert (
        challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


@pytest.mark.parametrize("sub", ["2", "3"])
async def test_whoever_has_no_group_or_no_verified_address_stays_out(
    own_shop: Shop, port: int, tmp_path: Path, sub: str
) -> None:
    async with console(own_shop, port, tmp_path, LEADS) as browser:
        address, cookie = await depart(browser)
        answer = await come_back(browser, agree(address, sub), cookie)
    assert answer.status_code == 401
    assert "__Host-toll=toll" not in str(answer.headers)
    assert own_shop.service.engine.state.accounts[1].users == {}


async def test_without_roles_only_those_come_in_who_are_users_already(
    own_shop: Shop, port: int, tmp_path: Path
) -> None:
    async with console(own_shop, port, tmp_path, "") as browser:
        for expected in (401, 303):
            address, cookie = await depart(browser)
            answer = await come_back(browser, agree(address, "2"), cookie)
            assert answer.status_code == expected
            body = {"user": {"role": "viewer"}}
            await own_shop.service.client.put("/v1/users/rui@shop.example", json=body)


async def test_the_way_back_works_once_and_in_the_browser_that_began_it_alone(
    own_shop: Shop, port: int, tmp_path: Path
) -> None:
    async with console(own_shop, port, tmp_path, LEADS) as browser:
        address, cookie = await depart(browser)
        way = agree(address, "1")
        for wrong in ("", "__Host-toll-sign-in=guess"):
            assert (await come_back(browser, way, wrong)).status_code == 401
        other_address, other_cookie = await depart(browser)
        assert (await come_back(browser, way, other_cookie)).status_code == 401
        assert (
            await come_back(browser, way + "&iss=https://evil.example", cookie)
        ).status_code == 401
        again = agree(other_address, "1")
        assert (await come_back(browser, again, other_cookie)).status_code == 401
        address, cookie = await depart(browser)
        way = agree(address, "1")
        assert (await come_back(browser, way, cookie)).status_code == 303
        assert (await come_back(browser, way, cookie)).status_code == 401


async def test_a_person_who_takes_too_long_begins_anew(
    own_shop: Shop, port: int, tmp_path: Path
) -> None:
    engine = own_shop.service.engine
    async with console(own_shop, port, tmp_path, LEADS) as browser:
        address, cookie = await depart(browser)
        way, late = agree(address, "1"), engine.clock() + 601_000_000
        engine.clock = lambda: late
        assert (await come_back(browser, way, cookie)).status_code == 401


async def test_a_provider_that_changes_its_keys_goes_on_letting_people_in(
    own_shop: Shop, tmp_path: Path, idle_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer, "ANEW_S", 0)
    async with console(own_shop, idle_port, tmp_path, LEADS) as browser:
        for _ in range(2):
            with provider(idle_port):
                address, cookie = await depart(browser)
                answer = await come_back(browser, agree(address, "1"), cookie)
                assert answer.status_code == 303


async def test_whoever_declines_at_the_provider_is_back_at_the_start(
    own_shop: Shop, port: int, tmp_path: Path
) -> None:
    async with console(own_shop, port, tmp_path, LEADS) as browser:
        _, cookie = await depart(browser)
        way = "/console/sign-in/openid?error=access_denied"
        answer = await come_back(browser, way, cookie)
    assert answer.status_code == 401
    assert "/console/sign-in/with/shop" in answer.text


async def test_a_provider_that_is_away_is_said_to_be(
    own_shop: Shop, tmp_path: Path, idle_port: int
) -> None:
    async with console(own_shop, idle_port, tmp_path, LEADS) as browser:
        answer = await browser.post("/v1/sign-ins", json={"sign_in": {"account": "shop"}})
        assert answer.status_code == 503
        answer = await browser.post("/v1/sign-ins", json={"sign_in": {"account": "night"}})
        assert answer.status_code == 404
