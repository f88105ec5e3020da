"""`/v1/sign-ins`: begin a sign-in by OpenID Connect."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import unavailable
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.sessions import take_sign_in
from tollkeeper.api.http.tags import ACCESS
from tollkeeper.engine.openid.issuer import UnreachableError
from tollkeeper.engine.openid.sign_in import begin_sign_in


class ProviderView(Struct, frozen=True):
    """A provider that signs people in to `account`; `title` is its name for people."""

    account: str
    title: str


class ProviderList(Struct, frozen=True):
    providers: list[ProviderView]


class WantedSignIn(Struct, frozen=True, forbid_unknown_fields=True):
    account: str


class WantedSignInBody(Struct, frozen=True, forbid_unknown_fields=True):
    sign_in: WantedSignIn


class BegunSignIn(Struct, frozen=True):
    """The browser goes to `address` and keeps `attempt` for `POST /v1/sessions`, where it works
    once.
    """

    address: str
    attempt: str


class BegunAnswer(Struct, frozen=True):
    sign_in: BegunSignIn


@operation(
    "GET",
    "/v1/sign-ins",
    "list_providers",
    tag=ACCESS,
    summary="List the sign-in providers",
    doc="The accounts with sign-in by OpenID Connect, as the operator has configured it.",
    scope=None,
    answers={200: Answer("All of them.")},
)
async def list_providers(request: Request) -> ProviderList:
    providers = request.service.openid.providers
    return ProviderList(
        [ProviderView(name, each.title or name) for name, each in providers.items()]
    )


@operation(
    "POST",
    "/v1/sign-ins",
    "begin_sign_in",
    tag=ACCESS,
    summary="Begin a sign-in by OpenID Connect",
    doc="The code flow with PKCE: the person goes to the provider, which sends them back to the console with a code for `POST /v1/sessions`, within ten minutes.",
    scope=None,
    sent=Body(
        WantedSignInBody, {"shop": Example("to an account", {"sign_in": {"account": "shop"}})}
    ),
    answers={201: Answer("Where to send the browser.")},
    refusals=(404, 422, 429, 503),
)
async def begin(request: Request) -> BegunAnswer:
    take_sign_in(request)
    account = (await read_json(request, WantedSignInBody)).sign_in.account
    try:
        engine = request.engine
        departure = await begin_sign_in(
            request.service.openid, account, engine.clock(), engine.journal.shard.number
        )
    except UnreachableError as error:
        request.log["sign_in"] = str(error)
        raise unavailable("the provider does not answer as it should") from None
    return BegunAnswer(BegunSignIn(departure.address, departure.attempt))


ROUTES = (list_providers, begin)
