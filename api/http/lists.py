"""Lists and tables over HTTP (docs/api.md, "Other operations")."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import Response
from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import invalid_at
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import NAME, NextCursor, path_parameter, query_parameter
from tollkeeper.api.http.parameters import limit as page_limit
from tollkeeper.api.http.queries import read_limit
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import LISTS
from tollkeeper.api.http.visibility import find_visible_list, is_list_visible
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.entries import show_entry
from tollkeeper.engine.lists.spec import ColumnType, EntryType, ListSpec, Lookup, Spec
from tollkeeper.engine.lists.values import MAX_VALUE_TEXT
from tollkeeper.engine.publish.change_lists import (
    LIST_PAGE,
    MakeList,
    PutEntries,
    RemoveEntries,
    list_page,
    met_page,
)
from tollkeeper.engine.registry.lists import find_list

NamedList = Annotated[
    str, path_parameter("The name of the list or table.", "trusted_merchants", NAME)
]


class ListBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A list of strings, of numbers, or of IP addresses and networks."""

    type: EntryType


class TableBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A table, looked up by exact value, longest prefix or network."""

    by: Lookup
    columns: Annotated[
        dict[Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_]*$")], ColumnType],
        Meta(
            description="The type of each column, or its possible strings.",
            extra_json_schema={"minProperties": 1, "maxProperties": 64},
        ),
    ]


class SentList(Struct, frozen=True, forbid_unknown_fields=True):
    """A `ListBody` or a `TableBody` that is not checked yet."""

    type: EntryType | UnsetType = UNSET
    by: Lookup | UnsetType = UNSET
    columns: dict[str, Any] | UnsetType = UNSET


class ListView(Struct, frozen=True):
    """A list has a `type`, a table `by` and `columns`."""

    name: str
    type: EntryType | UnsetType = UNSET
    by: Lookup | UnsetType = UNSET
    columns: dict[str, ColumnType] | UnsetType = UNSET


class ListAnswer(Struct, frozen=True):
    list: ListView


class ListOfLists(Struct, frozen=True):
    lists: list[ListView]


class EntryChange(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry; of a table, with `columns`. A number may be sent as text.

    Values are stored as sent; a card number in a note is masked. `by` is accepted and ignored, so
    that an answer may be sent back.
    """

    value: Annotated[str, Meta(min_length=1)] | float
    columns: dict[str, Any] | UnsetType = UNSET
    expires_at: Annotated[
        InstantText | UnsetType | None,
        Meta(description="ISO 8601 with an offset; from then on, rules no longer see the entry."),
    ] = UNSET
    note: Annotated[str, Meta(max_length=MAX_VALUE_TEXT)] | UnsetType | None = UNSET
    by: str | UnsetType = UNSET


class EntryBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Entries to add or renew; to remove them, their values are enough."""

    entries: Annotated[list[EntryChange], Meta(min_length=1)]


class SentEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """An `EntryBody` whose entries are not checked yet."""

    entries: tuple[Any, ...]


class EntryView(Struct, frozen=True):
    """An entry, all its values as text; `by` is the key or command that added it."""

    value: str
    columns: dict[str, str | None] | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    by: str | UnsetType = UNSET


class EntryPage(Struct, frozen=True):
    entries: list[EntryView]
    cursor: NextCursor


class PutCount(Struct, frozen=True):
    name: str
    put: int


class PutAnswer(Struct, frozen=True):
    list: PutCount


class RemovedCount(Struct, frozen=True):
    name: str
    removed: int


class RemovedAnswer(Struct, frozen=True):
    list: RemovedCount


@operation(
    "GET",
    "/v1/lists",
    "list_lists",
    tag=LISTS,
    summary="List the lists and tables",
    doc=(
        "By name. A user who is limited to some merchants sees those in the account's "
        "`merchant_lists`."
    ),
    scope="lists:read",
    of_merchants=True,
    answers={200: Answer("All of them.")},
)
async def list_lists(request: Request) -> ListOfLists:
    lists = request.account.lists
    names = [name for name in sorted(lists) if is_list_visible(request, name)]
    return ListOfLists([list_view(name, lists[name].spec) for name in names])


@operation(
    "GET",
    "/v1/lists/{name:str}",
    "read_list",
    tag=LISTS,
    summary="Read a list or table",
    doc="Its type, or its lookup and columns.",
    scope="lists:read",
    of_merchants=True,
    answers={200: Answer("The list.")},
    refusals=(404,),
)
async def read_list(request: Request, name: NamedList) -> ListAnswer:
    return ListAnswer(list_view(name, find_visible_list(request, name).spec))


@operation(
    "PUT",
    "/v1/lists/{name:str}",
    "make_list",
    tag=LISTS,
    summary="Make a list or a table",
    doc=(
        "With `type` a list, with `by` and `columns` a table. An existing one is left "
        "unchanged; if its type differs, the answer is 422. Publishing a rule that declares "
        "a list also makes it, empty."
    ),
    scope="lists:write",
    demand="change",
    sent=Body(
        ListBody | TableBody,
        {
            "list": Example("a list", {"type": "string"}),
            "table": Example(
                "a table of card prefixes",
                {
                    "by": "prefix",
                    "columns": {"country": "string", "funding": ["credit", "debit"]},
                },
            ),
        },
    ),
    answers={
        200: Answer("The list existed already."),
        201: Answer("The list is made, empty.", ListAnswer),
    },
    refusals=(503,),
)
async def make_list(request: Request, name: NamedList) -> Response[ListAnswer]:
    spec = msgspec.to_builtins(await read_json(request, SentList))
    made = (await request.perform(MakeList(request.account.name, name, spec))).count
    view = list_view(name, request.account.lists[name].spec)
    return Response(ListAnswer(view), status_code=HTTPStatus.CREATED if made else HTTPStatus.OK)


@operation(
    "GET",
    "/v1/lists/{name:str}/entries",
    "read_entries",
    tag=LISTS,
    summary="Read entries, page by page",
    doc="Ordered by value, expired ones included.",
    scope="lists:read",
    of_merchants=True,
    answers={200: Answer("A page.")},
    refusals=(404, 422, 503),
)
async def read_entries(
    request: Request,
    name: NamedList,
    cursor: Annotated[
        str | None,
        query_parameter("The `cursor` of the previous page; left out for the first page."),
    ] = None,
    limit: Annotated[str | None, page_limit(LIST_PAGE)] = None,
    value: Annotated[
        str | None,
        query_parameter(
            (
                "Only entries that match this value: the same value, networks that contain "
                "the address, or prefixes of the text."
            ),
            example="203.0.113.7",
        ),
    ] = None,
) -> EntryPage:
    spec = find_visible_list(request, name).spec
    most = read_limit(limit)
    journal, account = request.engine.journal, request.key.account
    if value is None:
        page = await list_page(journal, account, name, cursor, most)
    else:
        try:
            page = await met_page(journal, account, name, spec, value, cursor, most)
        except ValueError as error:
            raise invalid_at("value", "invalid_value", str(error)) from None
    entries = [entry_view(spec, entry) for entry in page.entries]
    return EntryPage(entries, page.cursor)


@operation(
    "PUT",
    "/v1/lists/{name:str}/entries",
    "put_entries",
    tag=LISTS,
    summary="Add or renew entries",
    doc="All or none; they take effect at once, in every rule that uses the list.",
    scope="lists:write",
    demand="change",
    sent=Body(
        EntryBody,
        {
            "entry": Example(
                "one that expires",
                {
                    "entries": [
                        {
                            "value": "m-1",
                            "expires_at": "2099-12-31T23:59:59Z",
                            "note": "contract 17",
                        }
                    ]
                },
            )
        },
    ),
    answers={200: Answer("The entries are added.")},
    refusals=(404, 503),
)
async def put_entries(request: Request, name: NamedList) -> PutAnswer:
    find_list(request.account, name)
    sent = await read_json(request, SentEntries)
    put = await request.perform(PutEntries(request.account.name, name, list(sent.entries)))
    return PutAnswer(PutCount(name, put.count or 0))


@operation(
    "DELETE",
    "/v1/lists/{name:str}/entries",
    "remove_entries",
    tag=LISTS,
    summary="Remove entries",
    doc="By their values, all or none: a value that doesn't exist is a 404.",
    scope="lists:write",
    demand="change",
    sent=Body(EntryBody, {"entry": Example("one", {"entries": [{"value": "m-1"}]})}),
    answers={200: Answer("The entries are removed.")},
    refusals=(404, 503),
)
async def remove_entries(request: Request, name: NamedList) -> RemovedAnswer:
    find_list(request.account, name)
    values = values_of((await read_json(request, SentEntries)).entries)
    removed = await request.perform(RemoveEntries(request.account.name, name, values))
    return RemovedAnswer(RemovedCount(name, removed.count or 0))


def values_of(entries: Sequence[Any]) -> list[Any]:
    """Return the values from entries given as values or as objects."""
    return [item.get("value") if isinstance(item, dict) else item for item in entries]


def entry_view(spec: Spec, entry: ListEntry) -> EntryView:
    """Return an entry as the interface shows it."""
    return msgspec.convert(show_entry(spec, entry), EntryView)


def list_view(name: str, spec: Spec) -> ListView:
    """Return a list in the form that `PUT /lists/{name}` takes, with its name."""
    if isinstance(spec, ListSpec):
        return ListView(name, type=spec.type)
    return ListView(name, by=spec.by, columns=spec.columns)


ROUTES = (list_lists, read_list, make_list, read_entries, put_entries, remove_entries)
