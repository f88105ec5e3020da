"""The operations on lists and tables (docs/language.md, "Lists and tables")."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.openapi.operation import (
    Content,
    Example,
    Operation,
    answered,
    path_parameter,
)
from tollkeeper.api.http.openapi.parameters import CURSOR, Cursor, limit
from tollkeeper.engine.lists.spec import ColumnType, EntryType, Lookup
from tollkeeper.engine.lists.values import MAX_TEXT
from tollkeeper.engine.publish.change_lists import PAGE

TAG = "Lists"

_NAME = path_parameter("name", "The name of the list or table.", "trusted_merchants")


class ListSent(Struct, forbid_unknown_fields=True):
    """A list of strings, of numbers, or of IP addresses and networks."""

    type: EntryType


class TableSent(Struct, forbid_unknown_fields=True):
    """A table, found by exact value, longest prefix or network."""

    by: Lookup
    columns: Annotated[
        dict[str, ColumnType],
        Meta(description="The type of each column, or the strings that it may hold."),
    ]


class ListShown(Struct):
    """A list has a `type`, a table `by` and `columns`."""

    name: str
    type: EntryType | UnsetType = UNSET
    by: Lookup | UnsetType = UNSET
    columns: dict[str, ColumnType] | UnsetType = UNSET


class EntrySent(Struct, forbid_unknown_fields=True):
    """An entry; a table's has `columns`. The value of a number may be sent as text.

    A value is kept as it is sent; a card number in a note is masked. `by` may come back as it was
    read, and is passed over.
    """

    value: str | float
    columns: dict[str, Any] | UnsetType = UNSET
    expires_at: Annotated[
        str | UnsetType | None, Meta(description="RFC 3339; from then on it is not there.")
    ] = UNSET
    note: Annotated[str, Meta(max_length=MAX_TEXT)] | UnsetType | None = UNSET
    by: str | UnsetType = UNSET


class EntryShown(Struct):
    """An entry, all its values as text; `by` is the key or command that added it."""

    value: str
    columns: dict[str, str | None] | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    by: str | UnsetType = UNSET


class PutCount(Struct):
    name: str
    put: int


class RemovedCount(Struct):
    name: str
    removed: int


OPERATIONS = (
    Operation(
        "get",
        "/v1/lists",
        "list_lists",
        TAG,
        "List the lists and tables",
        "By name.",
        "rules",
        {200: answered("All of them.", {"lists": list[ListShown]})},
    ),
    Operation(
        "put",
        "/v1/lists/{name}",
        "make_list",
        TAG,
        "Make a list or a table",
        "With `type` a list, with `by` and `columns` a table. One that is there already is left as "
        "it is; when it is of another type, the answer is 422. Publishing a rule that declares a "
        "list makes it as well, empty.",
        "rules",
        {
            200: answered("It was there already.", {"list": ListShown}),
            201: answered("It is made, empty.", {"list": ListShown}),
        },
        (503,),
        (_NAME,),
        Content(
            (ListSent, TableSent),
            examples={
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
    ),
    Operation(
        "get",
        "/v1/lists/{name}",
        "read_list",
        TAG,
        "Read what a list or table is",
        "Its type, or its lookup and columns.",
        "rules",
        {200: answered("The list.", {"list": ListShown})},
        (404,),
        (_NAME,),
    ),
    Operation(
        "get",
        "/v1/lists/{name}/entries",
        "read_entries",
        TAG,
        "Read entries, page by page",
        "Ordered by value, expired ones included.",
        "rules",
        {200: answered("A page.", {"entries": list[EntryShown], "cursor": Cursor})},
        (404, 422, 503),
        (_NAME, CURSOR, limit(PAGE)),
    ),
    Operation(
        "put",
        "/v1/lists/{name}/entries",
        "put_entries",
        TAG,
        "Add or renew entries",
        "All or none; they work at once, in every rule that uses the list.",
        "rules",
        {200: answered("They are in.", {"list": PutCount})},
        (404, 503),
        (_NAME,),
        Content(
            {"entries": list[EntrySent]},
            examples={
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
    ),
    Operation(
        "delete",
        "/v1/lists/{name}/entries",
        "remove_entries",
        TAG,
        "Remove entries",
        "By their values, all or none: one that is not there is a 404.",
        "rules",
        {200: answered("They are out.", {"list": RemovedCount})},
        (404, 503),
        (_NAME,),
        Content(
            {"entries": list[EntrySent]},
            examples={"entry": Example("one", {"entries": [{"value": "m-1"}]})},
        ),
    ),
)
