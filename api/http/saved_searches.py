"""`/v1/searches`: named searches of payments, shared within an account."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import invalid_at
from tollkeeper.api.http.filtering import MEMBERS
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import LINE, path_parameter
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.engine.make_change import change_account, make_change
from tollkeeper.engine.registry.searches import (
    MAX_SEARCH_NAME,
    MAX_SEARCH_TEXT,
    drop_search,
    save_search,
)
from tollkeeper.engine.search.filters import read_filter, read_members

PERSONAL: Final = frozenset({"card", "device", "ip", "user", "email", "order", "id"})
"""Filters that identify a person: a saved search would outlive the person's erasure."""
SearchName = Annotated[
    str,
    path_parameter(
        "The search's name.",
        "refused today",
        {"type": "string", "minLength": 1, "maxLength": MAX_SEARCH_NAME, "pattern": LINE},
    ),
]
_SearchText = Annotated[
    str,
    Meta(
        extra_json_schema={
            "minLength": 1,
            "maxLength": MAX_SEARCH_TEXT,
            "pattern": MEMBERS["pattern"],
        }
    ),
]


class SearchChange(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameter `q` of `GET /v1/payments`."""

    query: _SearchText


class SearchBody(Struct, frozen=True, forbid_unknown_fields=True):
    search: SearchChange


class SearchView(Struct, frozen=True):
    name: str
    query: str


class SearchList(Struct, frozen=True):
    searches: list[SearchView]


class SearchAnswer(Struct, frozen=True):
    search: SearchView


@operation(
    "GET",
    "/v1/searches",
    "list_searches",
    tag=PAYMENTS,
    summary="List the saved searches",
    doc="By name.",
    scope="payments:read",
    answers={200: Answer("All of them.")},
)
async def list_searches(request: Request) -> SearchList:
    found = sorted(request.account.searches.items())
    return SearchList([SearchView(name, query) for name, query in found])


@operation(
    "PUT",
    "/v1/searches/{name:str}",
    "save_search",
    tag=PAYMENTS,
    summary="Save a search",
    doc=(
        "For all people of the account. A search that names a card, device, address, user, "
        "e-mail, order or id is refused: it would outlive the erasure of that person's "
        "data."
    ),
    scope="labels:write",
    demand="change",
    sent=Body(
        SearchBody, {"refused": Example("refused", {"search": {"query": "action:deny since:1d"}})}
    ),
    answers={200: Answer("The search is saved.")},
    refusals=(409, 503),
)
async def put_search(request: Request, name: SearchName) -> SearchAnswer:
    query = (await read_json(request, SearchBody)).search.query
    members = read_members(query)
    read_filter(members, request.engine.clock())
    if personal := sorted(PERSONAL & {each[0] for each in members}):
        message = f"a saved search names nobody: leave out `{personal[0]}`"
        raise invalid_at("search.query", "invalid_value", message)
    engine, key = request.engine, request.key
    await change_account(engine, key.account, key.id, lambda state: save_search(state, name, query))
    return SearchAnswer(SearchView(name, query))


@operation(
    "DELETE",
    "/v1/searches/{name:str}",
    "drop_search",
    tag=PAYMENTS,
    summary="Delete a saved search",
    doc="For all people of the account.",
    scope="labels:write",
    demand="change",
    answers={200: Answer("The search is deleted.")},
    refusals=(404, 503),
)
async def remove_search(request: Request, name: SearchName) -> SearchAnswer:
    engine, key = request.engine, request.key
    async with engine.changing:
        query = request.account.searches.get(name, "")
        change = drop_search(request.account, name)
        await make_change(engine, key.account, key.id, change)
    return SearchAnswer(SearchView(name, query))


ROUTES = (list_searches, put_search, remove_search)
