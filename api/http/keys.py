"""`/v1/keys`: the account's keys. A key is shown once, when it is made, and can be revoked."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import forbidden_owner, invalid_at
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import LINE, path_parameter
from tollkeeper.api.http.queries import read_time
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCESS
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.publish.accounts import CreateKey, RevokeKey
from tollkeeper.engine.registry.accounts import sharing
from tollkeeper.engine.registry.keys import MAX_KEY_NAME
from tollkeeper.engine.registry.scopes import KeyScope
from tollkeeper.engine.registry.state import ApiKey

KeyId = Annotated[
    str,
    path_parameter("The key's id: the part of it that is not secret.", "toll_a1b2c3d4", name="id"),
]


class NewKey(Struct, frozen=True, forbid_unknown_fields=True):
    """`expires_at` is the end of its validity, by default none; `test` makes it a key of the test
    account.

    `owner` is the user responsible for it: the requester, if that is a user; a test key has none.
    For a key of another user there is `toll keys create --owner`.
    """

    scopes: Annotated[tuple[KeyScope, ...], Meta(extra_json_schema={"minItems": 1})]
    name: Annotated[str, Meta(extra_json_schema={"maxLength": MAX_KEY_NAME, "pattern": LINE})] = ""
    expires_at: InstantText | None = None
    test: bool = False
    owner: str | None = None


class NewKeyBody(Struct, frozen=True, forbid_unknown_fields=True):
    key: NewKey


class KeyView(Struct, frozen=True):
    """A key without its secret; `used_at` is its last use, as far as the service remembers."""

    id: str
    name: str
    scopes: list[str]
    owner: str | None
    test: bool
    created_at: InstantText
    created_by: str
    expires_at: InstantText | None
    used_at: InstantText | None
    revoked_at: InstantText | None


class KeyList(Struct, frozen=True):
    keys: list[KeyView]


class MadeKey(KeyView, frozen=True, kw_only=True):
    """`secret` is the key itself. It is not stored, so it is shown only once."""

    secret: str


class MadeKeyAnswer(Struct, frozen=True):
    key: MadeKey


class KeyAnswer(Struct, frozen=True):
    key: KeyView


@operation(
    "GET",
    "/v1/keys",
    "list_keys",
    tag=ACCESS,
    summary="List the keys",
    doc=("The keys of the account and of its test account, oldest first, including revoked ones."),
    scope="users:read",
    answers={200: Answer("All of them.")},
)
async def list_keys(request: Request) -> KeyList:
    found = sorted(_keys(request), key=lambda key: (key.created_at, key.id))
    return KeyList([_key_view(request, key) for key in found])


@operation(
    "POST",
    "/v1/keys",
    "create_key",
    tag=ACCESS,
    summary="Make a key",
    doc=(
        "The answer contains its secret, which is shown only once: the service stores its "
        "hash alone."
    ),
    scope="users:write",
    demand="change",
    sent=Body(
        NewKeyBody,
        {"shop": Example("a shop's", {"key": {"scopes": ["payments:write"], "name": "till"}})},
    ),
    answers={201: Answer("The key, with its secret.", MadeKeyAnswer)},
    refusals=(409, 503),
)
async def create_key(request: Request) -> MadeKeyAnswer:
    sent = (await read_json(request, NewKeyBody)).key
    asking = request.key.id
    end = None if sent.expires_at is None else read_time("key.expires_at", sent.expires_at)
    if end is not None and end <= request.engine.clock():
        raise invalid_at("key.expires_at", "out_of_range", "a key ends in the future")
    mine = asking if asking in request.account.users else request.key.owner
    if sent.owner in request.account.users and sent.owner != mine:
        # Approvals go by a key's owner: with others' keys, one person could approve alone.
        raise forbidden_owner()
    # Users belong to the live account.
    owner = ("" if sent.test else mine) if sent.owner is None else sent.owner
    verb = CreateKey(request.account.name, sent.scopes, sent.name, end, sent.test, owner)
    secret = (await request.perform(verb)).key
    assert secret is not None
    (made,) = (key for key in _keys(request) if secret.startswith(key.id))
    view = _key_view(request, made)
    return MadeKeyAnswer(MadeKey(**{name: getattr(view, name) for name in _NAMES}, secret=secret))


@operation(
    "DELETE",
    "/v1/keys/{id:str}",
    "revoke_key",
    tag=ACCESS,
    summary="Revoke a key",
    doc="It can't be used from now on, and sessions that it started end.",
    scope="users:write",
    demand="change",
    answers={200: Answer("It is revoked.")},
    refusals=(404, 409, 503),
)
async def revoke_key(request: Request, id_: KeyId) -> KeyAnswer:
    await request.perform(RevokeKey(request.account.name, id_))
    (revoked,) = (key for key in _keys(request) if key.id == id_)
    return KeyAnswer(_key_view(request, revoked))


_NAMES = KeyView.__struct_fields__


def _keys(request: Request) -> list[ApiKey]:
    state = request.engine.state
    numbers = sharing(state, request.key.account)
    return [key for number in numbers for key in state.accounts[number].keys.values()]


def _key_view(request: Request, key: ApiKey) -> KeyView:
    ends, used, revoked = (
        None if at is None else show_instant(at)
        for at in (key.expires_at, request.engine.key_uses.get(key.id), key.revoked_at)
    )
    return KeyView(
        id=key.id,
        name=key.name,
        scopes=list(key.scopes),
        owner=key.owner or None,
        test=request.engine.state.accounts[key.account].live is not None,
        created_at=show_instant(key.created_at),
        created_by=key.created_by,
        expires_at=ends,
        used_at=used,
        revoked_at=revoked,
    )


ROUTES = (list_keys, create_key, revoke_key)
