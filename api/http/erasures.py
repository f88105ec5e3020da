"""Erase one person's data over HTTP."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.engine.intake.payment import RequiredText
from tollkeeper.engine.privacy.erasure import erase_user

_ERASURE = {
    "erasure": {
        "person": "7cb3cbfcc0a9f0e6bbd8b9a4b7ae0fbba2bc4b1b1cd9c9d1e4c1c3c6c1b9a2d4",
        "payments": 12,
        "events": 3,
        "alerts": 1,
        "list_entries": {"blocked": 1},
    }
}


class ErasureBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The user's id, as in payments."""

    user: RequiredText


class Erasure(Struct, frozen=True):
    """How many payments, events and alerts held data of the person, and how many entries were
    removed from each list.

    `person` is the SHA-256, in hex, of the id; the audit log names the erasure by it.
    """

    person: str
    payments: int
    events: int
    alerts: int
    list_entries: dict[str, int]


class ErasureAnswer(Struct, frozen=True):
    erasure: Erasure


@operation(
    "POST",
    "/v1/erasures",
    "erase_person",
    tag=ACCOUNT,
    summary="Erase one person's data",
    doc="""The erasure is permanent, and made by one request. Once the request is stored, the erasure is made: if it fails, the service tries again every five minutes, and after a restart. Sent again, it erases what arrived since.

- Of the person's payments: user, device, backend, metadata and the card's digits. The decision stays, and so do amount, merchant, status and attempts.
- Of events that name the person: free texts and addresses.
- Of alerts that contain any of these: keys and values.
- Entries of lists and tables whose value is the id, or an e-mail address that a payment has together with it. They are your configuration: `list_entries` says how many each list lost.

The audit log records when, by whom and how much, with a hash in place of the id.""",
    scope="people:write",
    demand="change",
    sent=Body(ErasureBody, {"user": Example("a customer", {"user": "u-1"})}),
    answers={200: Answer("What was erased.", examples={"erased": Example("a customer", _ERASURE)})},
    refusals=(422, 503),
)
async def erase_person(request: Request) -> ErasureAnswer:
    engine, key = request.engine, request.key
    user = (await read_json(request, ErasureBody)).user
    erasing = asyncio.create_task(erase_user(engine, key.account, key.id, user))
    # Shielded, so that it completes even if the client disconnects.
    engine.background.add(erasing)
    erasing.add_done_callback(engine.background.discard)
    erased = await asyncio.shield(erasing)
    return ErasureAnswer(
        Erasure(erased.person, erased.payments, erased.events, erased.alerts, erased.list_entries)
    )


ROUTES = (erase_person,)
