"""`/v1/webhooks`: where alerts are sent, and how each delivery fares."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, cast

from msgspec import Meta, Struct

from tollkeeper.api.http.alerts import AlertView
from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import (
    Cursor,
    Limit,
    NextCursor,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.queries import read_limit, read_place, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.engine.events.delivery import send_sample
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Delivery
from tollkeeper.engine.monitors.webhook_reach import check_reach
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.registry.webhooks import (
    MAX_SECRET,
    MAX_URL,
    MIN_SECRET,
    find_webhook,
    remove_webhook,
    set_webhook,
    webhook_id,
)

Url = Annotated[str, Meta(max_length=MAX_URL, examples=["https://shop.example/alerts"])]
Secret = Annotated[str, Meta(min_length=MIN_SECRET, max_length=MAX_SECRET)]

DeliveryState: TypeAlias = Literal["pending", "delivered", "dropped"]


WebhookId = Annotated[str, path_parameter("The webhook's id.", "wh_0123456789abcdef")]


class WebhookChange(Struct, frozen=True, forbid_unknown_fields=True):
    """An address, with one secret, or two while one replaces the other."""

    url: Url
    secrets: Annotated[list[Secret], Meta(min_length=1, max_length=2)]


class WebhookBody(Struct, frozen=True, forbid_unknown_fields=True):
    webhook: WebhookChange


class SentWebhook(Struct, frozen=True, forbid_unknown_fields=True):
    """A `WebhookChange` that is still to be checked."""

    url: str
    secrets: tuple[str, ...]


class SentWebhookBody(Struct, frozen=True, forbid_unknown_fields=True):
    webhook: SentWebhook


class WebhookView(Struct, frozen=True):
    """A webhook with the number of its secrets, which are never shown."""

    id: str
    url: str
    secrets: int


class WebhookList(Struct, frozen=True):
    webhooks: list[WebhookView]


class WebhookAnswer(Struct, frozen=True):
    webhook: WebhookView


class WebhookAddress(Struct, frozen=True):
    url: str


class WebhookRemoval(Struct, frozen=True):
    webhook: WebhookAddress


class DeliveryView(Struct, frozen=True):
    """One alert on its way to one address; `status` and `error` are those of the last attempt.

    `next_at` is there while it is pending, `delivered_at` once it is delivered.
    """

    id: str
    alert: str
    url: str
    state: DeliveryState
    attempts: int
    status: int | None
    error: str | None
    next_at: InstantText | None
    delivered_at: InstantText | None


class SampleView(Struct, frozen=True):
    """What the receiver answered to a sample, or what went wrong; `delivered` when it took it."""

    delivered: bool
    status: int | None
    error: str | None


class SampleAnswer(Struct, frozen=True):
    sample: SampleView


class DeliveryAnswer(Struct, frozen=True):
    delivery: DeliveryView


class SentAlert(Struct, frozen=True):
    """The body that a webhook is sent."""

    alert: AlertView


class DeliveryPage(Struct, frozen=True):
    deliveries: list[DeliveryView]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/webhooks",
    "list_webhooks",
    tag=ACCOUNT,
    summary="List the webhooks",
    doc="Where alerts are sent.",
    scope="settings:read",
    answers={200: Answer("All of them.")},
)
async def list_webhooks(request: Request) -> WebhookList:
    webhooks = request.account.webhooks
    return WebhookList([webhook_view(webhooks[url]) for url in sorted(webhooks)])


@operation(
    "PUT",
    "/v1/webhooks",
    "set_webhook",
    tag=ACCOUNT,
    summary="Send alerts to an address",
    doc="A new address, or new secrets for one that is there. It starts with `https://` and is a "
    "public one, both when it is set and whenever its name is resolved. Each delivery is signed with every "
    "secret, so that a receiver can change from one to the other.",
    scope="settings:write",
    sent=Body(
        WebhookBody,
        {
            "webhook": Example(
                "one secret",
                {
                    "webhook": {
                        "url": "https://shop.example/alerts",
                        "secrets": ["an-example-secret-of-32-letters"],
                    }
                },
            )
        },
    ),
    answers={200: Answer("Alerts are sent there.")},
    refusals=(503,),
)
async def put_webhook(request: Request) -> WebhookAnswer:
    engine, key = request.engine, request.key
    sent = (await read_json(request, SentWebhookBody)).webhook
    async with engine.changing:
        change = set_webhook(request.account, sent.url, sent.secrets)
        check_reach(sent.url, engine.reach)
        await make_change(engine, key.account, key.id, change)
    return WebhookAnswer(webhook_view(request.account.webhooks[sent.url]))


@operation(
    "DELETE",
    "/v1/webhooks",
    "remove_webhook",
    tag=ACCOUNT,
    summary="Send no more alerts to an address",
    doc="Deliveries that are still pending are dropped.",
    scope="settings:write",
    answers={200: Answer("Nothing is sent there any more.")},
    refusals=(404, 503),
)
async def delete_webhook(
    request: Request,
    url: Annotated[
        str, query_parameter("The webhook's address.", example="https://shop.example/alerts")
    ] = "",
) -> WebhookRemoval:
    async with request.engine.changing:
        change = remove_webhook(request.account, url)
        await make_change(request.engine, request.key.account, request.key.id, change)
    return WebhookRemoval(WebhookAddress(url))


@operation(
    "GET",
    "/v1/webhooks/deliveries",
    "list_deliveries",
    tag=ACCOUNT,
    summary="List deliveries, newest first",
    doc="Each alert on its way to each address, with its attempts.",
    scope="settings:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def list_deliveries(
    request: Request, cursor: Cursor = None, limit: Limit = None
) -> DeliveryPage:
    before, most = read_place("cursor", cursor), read_limit(limit)
    account = request.key.account
    found = request.engine.outbox.read(lambda c: outbox.deliveries(c, account, before, most))
    return DeliveryPage(
        [delivery_view(delivery) for delivery in found],
        show_place(found[-1].sequence if len(found) >= most else None),
    )


@operation(
    "POST",
    "/v1/webhooks/{id:str}/test",
    "test_webhook",
    tag=ACCOUNT,
    summary="Send a sample to a webhook",
    doc="An alert that nothing raised, of the type `sample`, is sent once and signed as every other; "
    "the answer tells what the receiver said.",
    scope="settings:write",
    answers={200: Answer("It was sent.", SampleAnswer)},
    refusals=(404, 503),
)
async def try_webhook(
    request: Request,
    id: WebhookId,  # noqa: A002 - the parameter has the name of its place in the path
) -> SampleAnswer:
    webhook = find_webhook(request.account, id)
    status, error = await send_sample(request.engine, request.key.account, webhook)
    return SampleAnswer(SampleView(status is not None and 200 <= status < 300, status, error))


@operation(
    "POST",
    "/v1/webhooks/{id:str}/deliveries/{delivery:str}/redeliver",
    "redeliver_webhook",
    tag=ACCOUNT,
    summary="Send a delivery again",
    doc="Whatever became of it: it is sent at once, and again until it is taken, under the same id.",
    scope="settings:write",
    answers={200: Answer("It is on its way.", DeliveryAnswer)},
    refusals=(404, 503),
)
async def redeliver(
    request: Request,
    id: WebhookId,  # noqa: A002 - the parameter has the name of its place in the path
    delivery: Annotated[str, path_parameter("The delivery's id.", "20-0-a1b2c3d4e5f6")],
) -> DeliveryAnswer:
    engine, account = request.engine, request.key.account
    url = find_webhook(request.account, id).url
    now = engine.clock()
    found = await engine.outbox.write(lambda c: outbox.redeliver(c, account, url, delivery, now))
    if found is None:
        raise NotFound("delivery", "this webhook has no delivery of this id")
    engine.watch.raised.set()
    return DeliveryAnswer(delivery_view(found))


def webhook_view(webhook: Webhook) -> WebhookView:
    return WebhookView(webhook_id(webhook.url), webhook.url, len(webhook.secrets))


def delivery_view(delivery: Delivery) -> DeliveryView:
    pending = delivery.state == "pending"
    at = delivery.delivered_at
    return DeliveryView(
        id=delivery.id,
        alert=f"{delivery.sequence}-{delivery.number}",
        url=delivery.url,
        state=cast("DeliveryState", delivery.state),
        attempts=delivery.attempts,
        status=delivery.status,
        error=delivery.error,
        next_at=show_instant(delivery.next_at) if pending else None,
        delivered_at=None if at is None else show_instant(at),
    )


ROUTES = (
    list_webhooks,
    put_webhook,
    delete_webhook,
    list_deliveries,
    try_webhook,
    redeliver,
)
