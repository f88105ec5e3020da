"""A person's look at a page: who they are, what they asked for, and what they read it in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from litestar import Request

from tollkeeper.api.console.client import JsonObject, PublicClient, RefusalError
from tollkeeper.api.console.words import Words, choose

COOKIE = "__Host-toll"
ATTEMPT_COOKIE = "__Host-toll-sign-in"
"""Held by the browser of a person who is at an OpenID provider."""
SIGN_IN = "/console/sign-in"
VISIT = "visit"
"""Where a request keeps its visit, for what is said when the page is refused."""


class SignedOutError(Exception):
    """Nobody is signed in; `back` is where the person wanted to go."""

    def __init__(self, back: str) -> None:
        self.back = back
        super().__init__(back)


@dataclass(frozen=True, slots=True)
class Visit:
    """`query` is the page's own; `zone` the account's time zone, UTC to those who may not read it.
    `merchants` are those that the person sees, none for all; `has_lists` says whether there is a
    list that such a person may read. `four_eyes` says that what is published needs another person,
    `list_approval` that entries of lists do.
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
        """Whether the person may do what needs the scope."""
        return scope in self.scopes

    def sees(self, page: str) -> bool:
        """Whether the page of this name has anything to show to who sees some merchants alone."""
        return page != "lists" or self.has_lists

    def address(self, **changed: str | None) -> str:
        """This page with some of its query changed, or left out where it is None."""
        query = {**self.query, **changed}
        return target(self.path, **query)


def target(path: str, /, **query: str | None) -> str:
    """A path with those of the query that are there."""
    said = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{said}" if said else path


async def visit(request: Request[Any, Any, Any]) -> Visit:
    """The signed-in person's visit. Raises `SignedOutError`, `RefusalError`."""
    client = public_client(request, request.cookies.get(COOKIE, ""))
    back = str(request.url.path) + (f"?{request.url.query}" if request.url.query else "")
    if not client.key:
        raise SignedOutError(back)
    try:
        session = (await client.get("/v1/session"))["session"]
    except RefusalError as refusal:
        if refusal.status == 401:
            raise SignedOutError(back) from None
        raise
    scopes = frozenset(session["scopes"])
    zone, four_eyes, list_approval = ZoneInfo("UTC"), False, False
    if "settings:read" in scopes:
        account: JsonObject = (await client.get("/v1/account"))["account"]
        zone = ZoneInfo(account["time_zone"])
        four_eyes, list_approval = (account["approvals"][name] for name in ("publish", "lists"))
    merchants = tuple(session["merchants"])
    is_shown_lists = not merchants or (
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
        has_lists=is_shown_lists,
        zone=zone,
        four_eyes=four_eyes,
        list_approval=list_approval,
        now=datetime.now(UTC),
    )
    request.state[VISIT] = here
    return here


def public_client(request: Request[Any, Any, Any], key: str) -> PublicClient:
    """The public interface, called with `key`."""
    address = request.scope["client"]
    return PublicClient(
        request.scope["state"]["public"], key, None if address is None else (address[0], address[1])
    )


def choose_words(request: Request[Any, Any, Any]) -> Words:
    """The texts in the language that the browser asks for."""
    return choose(request.headers.get("accept-language", ""))
