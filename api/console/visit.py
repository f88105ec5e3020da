"""A person's request for a page: who they are, which page they requested, and in which language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

from litestar import Request

from tollkeeper.api.console.client import JsonObject, PublicClient, RefusalError
from tollkeeper.api.console.words import Words, choose

COOKIE = "__Host-toll"
ATTEMPT_COOKIE = "__Host-toll-sign-in"
"""Set in the browser of a person who is at an OpenID provider."""
SIGN_IN = "/console/sign-in"
VISIT = "visit"
"""Where a request stores its visit, for error pages."""


class SignedOutError(Exception):
    """Nobody is signed in; `back` is the page to return to."""

    def __init__(self, back: str) -> None:
        self.back = back
        super().__init__(back)


@dataclass(frozen=True, slots=True)
class Visit:
    """`query` is the page's own; `zone` the account's time zone, UTC for those who may not read it.
    `merchants` are those that the person may see, empty for all; `has_lists` says whether a user
    limited to some merchants may read any list. `four_eyes` says that publishing needs another
    person, `list_approval` that changing lists does.
    """

    client: PublicClient
    words: Words
    path: str
    query: Mapping[str, str]
    account: str
    owner: str
    scopes: frozenset[str]
    merchants: tuple[str, ...]
    has_lists: bool
    zone: ZoneInfo
    four_eyes: bool
    list_approval: bool
    now: datetime

    def may(self, scope: str) -> bool:
        """Whether the person has the scope."""
        return scope in self.scopes

    def sees(self, page: str) -> bool:
        """Whether a user limited to some merchants sees anything on this page."""
        return page != "lists" or self.has_lists

    def address(self, **changed: str | None) -> str:
        """Return this page's address with some query parameters changed, or removed if None."""
        query = {**self.query, **changed}
        return target(self.path, **query)


def target(path: str, /, **query: str | None) -> str:
    """Return a path with the query parameters that are not None."""
    # A colon may stay unescaped in a query, and searches contain many.
    encoded = urlencode({name: value for name, value in query.items() if value}, safe=":")
    return f"{path}?{encoded}" if encoded else path


def _page_of(request: Request[Any, Any, Any]) -> str:
    """Return the path and query of the requested page; for a form, of the page that sent it."""
    own = str(request.url)
    page = urlsplit(request.headers.get("referer", own) if request.method == "POST" else own)
    return page.path + (f"?{page.query}" if page.query else "")


async def visit(request: Request[Any, Any, Any]) -> Visit:
    """Return the signed-in person's visit. Raises `SignedOutError`, `RefusalError`."""
    client = public_client(request, request.cookies.get(COOKIE, ""))
    back = _page_of(request)
    if not client.key:
        raise SignedOutError(back)
    try:
        session = (await client.get("/v1/session"))["session"]
    except RefusalError as refusal:
        if refusal.status == 401:
            raise SignedOutError(back) from None
        raise
    scopes = frozenset(session["scopes"])
    four_eyes, list_approval = False, False
    if "settings:read" in scopes:
        account: JsonObject = (await client.get("/v1/account"))["account"]
        four_eyes, list_approval = (account["approvals"][name] for name in ("publish", "lists"))
    merchants = tuple(session["merchants"])
    has_lists = not merchants or (
        "lists:read" in scopes and bool((await client.get("/v1/lists"))["lists"])
    )
    client.calls.clear()
    here = Visit(
        client=client,
        words=choose_words(request),
        path=request.url.path,
        query={name: value for name, value in request.query_params.items() if value},
        account=session["account"],
        owner=session["owner"],
        scopes=scopes,
        merchants=merchants,
        has_lists=has_lists,
        zone=ZoneInfo(session["time_zone"]),
        four_eyes=four_eyes,
        list_approval=list_approval,
        now=datetime.now(UTC),
    )
    request.state[VISIT] = here
    return here


def public_client(request: Request[Any, Any, Any], key: str) -> PublicClient:
    """Return a client of the public interface with `key`."""
    state, address = request.scope["state"], request.scope["client"]
    at = None if address is None else (address[0], address[1])
    return PublicClient(state["public"], key, at, state["turns"])


def choose_words(request: Request[Any, Any, Any]) -> Words:
    """Return the texts in the language that the browser prefers."""
    return choose(request.headers.get("accept-language", ""))
