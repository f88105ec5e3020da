"""`/v1/sessions`: sign in with a key or a link's code, read one's own session, sign out."""

from __future__ import annotations

from time import monotonic
from typing import Annotated

from msgspec import Meta, Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.authentication import ANY_SCOPE, presented_key
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import unauthorized, unavailable
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCESS
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.openid.id_token import TokenError
from tollkeeper.engine.openid.issuer import UnreachableError
from tollkeeper.engine.openid.sign_in import finish_sign_in
from tollkeeper.engine.publish.sign_in import end_session, start_session
from tollkeeper.engine.registry.keys import authenticate
from tollkeeper.engine.registry.roles import Role
from tollkeeper.engine.registry.sessions import SignInGrant

_Secret = Annotated[str, Meta(min_length=1, max_length=256)]


class WithKey(Struct, frozen=True, forbid_unknown_fields=True):
    """A key of the account: the session has the key's scopes and ends with it."""

    key: _Secret


class WithCode(Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a link from `toll users link` or `toll console`; it works once."""

    code: _Secret


class WithOpenId(Struct, frozen=True, forbid_unknown_fields=True):
    """What the provider sent the person back with; `attempt` is from `POST /v1/sign-ins` and works
    once. `issuer` is the answer's `iss`, if it has one.
    """

    attempt: _Secret
    state: str
    code: str
    issuer: str | None = None


class SignIn(Struct, frozen=True, forbid_unknown_fields=True):
    """A key, a link's code, or the answer of an OpenID provider."""

    key: str | None = None
    code: str | None = None
    attempt: str | None = None
    state: str = ""
    issuer: str | None = None


class SignInBody(Struct, frozen=True, forbid_unknown_fields=True):
    session: SignIn


class KeySignInBody(Struct, frozen=True, forbid_unknown_fields=True):
    session: WithKey


class CodeSignInBody(Struct, frozen=True, forbid_unknown_fields=True):
    session: WithCode


class OpenIdSignInBody(Struct, frozen=True, forbid_unknown_fields=True):
    session: WithOpenId


class StartedSession(Struct, frozen=True):
    """`token` is sent in place of a key; the session ends after half an hour without a request."""

    token: str
    ends_at: InstantText


class StartedAnswer(Struct, frozen=True):
    session: StartedSession


class SessionView(Struct, frozen=True):
    """The requester: `owner` is the key's id, or the person who signed in; `role` is included for a
    user. `merchants` are those that the user may see; empty means all. `time_zone` is the account's.
    """

    account: str
    owner: str
    role: Role | None
    merchants: tuple[str, ...]
    scopes: list[str]
    time_zone: str
    ends_at: InstantText | None


class SessionAnswer(Struct, frozen=True):
    session: SessionView


class SignedOutAnswer(Struct, frozen=True):
    """Whether a session was sent."""

    ended: bool


@operation(
    "POST",
    "/v1/sessions",
    "sign_in",
    tag=ACCESS,
    summary="Sign a person in",
    doc=(
        "A session is a temporary key: it lasts at most twelve hours, and ends after half "
        "an hour without a request. It is sent like a key, has the scopes of the key or "
        "link that started it, and ends with that key."
    ),
    scope=None,
    sent=Body(
        KeySignInBody | CodeSignInBody | OpenIdSignInBody,
        {"code": Example("with a link's code", {"session": {"code": "JpO0mGZ4bWyd3Z"}})},
    ),
    answers={201: Answer("The person is signed in.", StartedAnswer)},
    refusals=(401, 422, 429, 503),
)
async def sign_in(request: Request) -> StartedAnswer:
    take_sign_in(request)
    sent = (await read_json(request, SignInBody)).session
    engine = request.engine
    now = engine.clock()
    known: SignInGrant | None
    if sent.attempt is not None and sent.code is not None and sent.key is None:
        known = await _by_openid(request, sent.attempt, sent.state, sent.code, sent.issuer)
    elif sent.code is not None and sent.key is None:
        known = engine.sessions.follow_link(sent.code, now)
    else:
        key = None if sent.key is None else authenticate(engine.state, sent.key, now)
        known = (
            None if key is None else SignInGrant(key.account, key.owner or key.id, parent=key.id)
        )
    started = None if known is None else await start_session(engine, known)
    if started is None:
        raise unauthorized()
    token, session = started
    return StartedAnswer(StartedSession(token, show_instant(session.ends_at)))


def take_sign_in(request: Request) -> None:
    """Count a sign-in attempt from the request's address. Raises `Problem` 429 if there are too
    many.
    """
    client = request.scope["client"]
    request.service.limiter.take_sign_in("" if client is None else client[0], monotonic())


async def _by_openid(
    request: Request, attempt: str, state: str, code: str, issuer: str | None
) -> SignInGrant | None:
    """Sign in by OpenID; None if it is refused, the reason for which is logged. Raises `Problem`
    503.
    """
    engine = request.engine
    try:
        return await finish_sign_in(
            engine, request.service.openid, attempt, state, code, issuer, engine.clock()
        )
    except TokenError as error:
        request.log["sign_in"] = str(error)
        return None
    except UnreachableError as error:
        request.log["sign_in"] = str(error)
        raise unavailable("the provider does not answer as it should") from None


@operation(
    "GET",
    "/v1/session",
    "read_session",
    tag=ACCESS,
    summary="Read one's own session",
    doc="The account, the scopes and the end of the key or session that is sent.",
    scope=ANY_SCOPE,
    answers={200: Answer("The session.")},
)
async def read_session(request: Request) -> SessionAnswer:
    engine = request.engine
    key = request.key
    found = engine.sessions.find(engine.state, presented_key(request.known), engine.clock())
    session = None if found is None else found[0]
    user = request.account.users[key.id] if session is not None and session.is_user else None
    return SessionAnswer(
        SessionView(
            request.account.name,
            key.id,
            None if user is None else user.role,
            key.merchants,
            sorted(key.granted),
            request.account.settings.time_zone,
            None if session is None else show_instant(session.ends_at),
        )
    )


@operation(
    "DELETE",
    "/v1/session",
    "sign_out",
    tag=ACCESS,
    summary="Sign out",
    doc="Ends the session that is sent; a key remains valid.",
    scope=ANY_SCOPE,
    answers={200: Answer("The session has ended.", SignedOutAnswer)},
)
async def sign_out(request: Request) -> SignedOutAnswer:
    return SignedOutAnswer(await end_session(request.engine, presented_key(request.known)))


ROUTES = (sign_in, read_session, sign_out)
