"""`/v1/users`: who may sign in, in which role, and one-time links to sign in."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import LINE, path_parameter
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCESS
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.publish.users import DropUser, PutUser, give_link
from tollkeeper.engine.registry.roles import Role
from tollkeeper.engine.registry.state import AccountUser

UserName = Annotated[
    str,
    path_parameter(
        "The user's name; an e-mail address if people sign in by one.",
        "ana",
        {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}(@[A-Za-z0-9.-]{1,190})?$"},
    ),
]


_MerchantId = Annotated[
    str, Meta(min_length=1, max_length=256, extra_json_schema={"pattern": LINE})
]


class UserChange(Struct, frozen=True, forbid_unknown_fields=True):
    """`merchants` are the ids of the only merchants that the user may see; empty means all. If left
    out, they stay as they are.
    """

    role: Role
    merchants: Annotated[tuple[_MerchantId, ...], Meta(max_length=100)] | None = None


class UserBody(Struct, frozen=True, forbid_unknown_fields=True):
    user: UserChange


class SentUser(Struct, frozen=True, forbid_unknown_fields=True):
    """A `UserChange` that is not checked yet."""

    role: str
    merchants: tuple[str, ...] | None = None


class SentUserBody(Struct, frozen=True, forbid_unknown_fields=True):
    user: SentUser


class UserView(Struct, frozen=True):
    """A person who may sign in; `since` is when they got the role, `by` who gave it."""

    name: str
    role: Role
    merchants: tuple[str, ...]
    since: InstantText
    by: str


class UserList(Struct, frozen=True):
    users: list[UserView]


class UserAnswer(Struct, frozen=True):
    user: UserView


class RemovedUser(Struct, frozen=True):
    name: str


class UserRemoval(Struct, frozen=True):
    user: RemovedUser


class LinkView(Struct, frozen=True):
    """`code` is sent to `POST /v1/sessions`, or as `/console/sign-in?code=`; it works once."""

    code: str
    ends_at: InstantText


class LinkAnswer(Struct, frozen=True):
    link: LinkView


@operation(
    "GET",
    "/v1/users",
    "list_users",
    tag=ACCESS,
    summary="List the users",
    doc="The people who may sign in, by name.",
    scope="users:read",
    answers={200: Answer("All of them.")},
)
async def list_users(request: Request) -> UserList:
    return UserList([user_view(user) for _, user in sorted(request.account.users.items())])


@operation(
    "PUT",
    "/v1/users/{name:str}",
    "set_user",
    tag=ACCESS,
    summary="Add a user, or change their role",
    doc=(
        "A role's permissions apply to its sessions from this moment on. A viewer reads "
        "everything that identifies nobody; an analyst also reads personal data, and sets "
        "labels, writes drafts and changes lists; a lead also publishes and changes "
        "settings; an auditor reads what a viewer does, and the audit log; an admin also manages users, "
        "and publishes nothing. A user who is limited to some merchants reads their "
        "payments, figures, labels, alerts, and the lists that the account shows to such "
        "users, and sets labels and writes notes, as far as the role permits; everything "
        "about other merchants is refused."
    ),
    scope="users:write",
    demand="change",
    sent=Body(UserBody, {"lead": Example("a lead", {"user": {"role": "lead"}})}),
    answers={200: Answer("The user as it is now.")},
    refusals=(409, 503),
)
async def set_user(request: Request, name: UserName) -> UserAnswer:
    sent = (await read_json(request, SentUserBody)).user
    await request.perform(PutUser(request.account.name, name, sent.role, sent.merchants))
    return UserAnswer(user_view(request.account.users[name]))


@operation(
    "DELETE",
    "/v1/users/{name:str}",
    "remove_user",
    tag=ACCESS,
    summary="Remove a user",
    doc=(
        "Their sessions end at once; keys that they answer for stay valid until they are "
        "revoked. What they did stays in the audit log under their name."
    ),
    scope="users:write",
    demand="change",
    answers={200: Answer("They can't sign in any more.")},
    refusals=(404, 503),
)
async def remove_user(request: Request, name: UserName) -> UserRemoval:
    await request.perform(DropUser(request.account.name, name))
    return UserRemoval(RemovedUser(name))


@operation(
    "POST",
    "/v1/users/{name:str}/links",
    "make_user_link",
    tag=ACCESS,
    summary="Make a link that signs a user in once",
    doc=(
        "It is valid for ten minutes, and until the service restarts; the session outlasts "
        "that. The audit log records that it was made, and by whom."
    ),
    scope="users:write",
    demand="change",
    answers={201: Answer("Its code, which is shown only once.")},
    refusals=(404, 409, 503),
)
async def make_user_link(request: Request, name: UserName) -> LinkAnswer:
    link = await give_link(request.engine, request.key.account, request.key.id, name)
    return LinkAnswer(LinkView(link.code, show_instant(link.ends_at)))


def user_view(user: AccountUser) -> UserView:
    return UserView(user.name, user.role, user.merchants, show_instant(user.since), user.set_by)


ROUTES = (list_users, set_user, remove_user, make_user_link)
