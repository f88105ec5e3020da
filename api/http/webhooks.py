"""`/v1/webhooks`: where notices are sent, and how each delivery fares."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, TypeAlias, cast, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from tollkeeper.api.http.alerts import alert_id
from tollkeeper.api.http.answers import InstantText
from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.notices import sample_body
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import (
    Cursor,
    Limit,
    NextCursor,
    path_parameter,
    query_parameter,
)
from tollkeeper.api.http.queries import read_choice, read_limit, read_place, show_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import ACCOUNT
from tollkeeper.engine.folder_key import Spot
from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Delivery
from tollkeeper.engine.registry.changes import DecidedFilter, NoticeKind
from tollkeeper.engine.registry.errors import Conflict
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.registry.webhooks import (
    LONGEST_OVERLAP,
    MAX_FILTERED,
    MAX_SECRET,
    MAX_URL,
    MAX_WEBHOOKS,
    MIN_SECRET,
    OVERLAP,
    WebhookAsked,
    find_webhook,
    opened_secrets,
    secrets_in_force,
    webhook_id,
)
from tollkeeper.engine.webhooks.change_webhooks import (
    RemoveWebhook,
    put_webhook,
    replace_secret,
    send_again,
)
from tollkeeper.engine.webhooks.delivery import SECOND, send_sample

NOTICE_KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
Secret: TypeAlias = Annotated[str, Meta(min_length=MIN_SECRET, max_length=MAX_SECRET)]
DeliveryState: TypeAlias = Literal["pending", "delivered", "dropped"]
WebhookId = Annotated[str, path_parameter("The webhook's id.", "wh_0123456789abcdef")]
DeliveryId = Annotated[str, path_parameter("The delivery's id.", f"{'0' * 32}-a1b2c3d4e5f6")]
FilterNames: TypeAlias = Annotated[tuple[str, ...], Meta(max_length=MAX_FILTERED)]


class WebhookFilter(DecidedFilter, frozen=True):
    """Which decisions `payment.decided` tells of: those of one of these actions, rules and
    conditions, the latter by their ids. Where none is named, any will do.
    """

    rule: FilterNames = ()
    condition: FilterNames = ()


class WebhookChange(Struct, frozen=True, forbid_unknown_fields=True):
    """What a webhook shall be; what is left out stays as it is.

    A new one without `secrets` has one made for it, without `kinds` it is sent alerts.
    """

    url: Annotated[
        str,
        Meta(
            max_length=MAX_URL,
            extra_json_schema={
                "pattern": r"^https?://([A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])"
                r"(:[1-9][0-9]{0,3})?([/?#][!-~]*)?$"
            },
            examples=["https://shop.example/notices"],
        ),
    ]
    secrets: Annotated[list[Secret], Meta(min_length=1, max_length=2)] | None = None
    kinds: Annotated[list[NoticeKind], Meta(min_length=1)] | None = None
    only: WebhookFilter | None = None
    paused: bool | None = None


class WebhookBody(Struct, frozen=True, forbid_unknown_fields=True):
    webhook: WebhookChange


class SentWebhookBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A `WebhookBody` that is still to be checked."""

    webhook: WebhookAsked


class WebhookView(Struct, frozen=True):
    """A webhook, with how many secrets sign for it now, which are never shown.

    `secret` is there once, when it was made. `waiting` are notices on their way, `given_up` those
    that were dropped because too many waited.
    """

    id: str
    url: str
    secrets: int
    kinds: list[NoticeKind]
    only: WebhookFilter
    paused: bool
    waiting: int
    given_up: int
    secret: str | UnsetType = UNSET


class WebhookList(Struct, frozen=True):
    webhooks: list[WebhookView]


class WebhookAnswer(Struct, frozen=True):
    webhook: WebhookView


class WebhookAddress(Struct, frozen=True):
    url: str


class WebhookRemoval(Struct, frozen=True):
    webhook: WebhookAddress


class SecretChange(Struct, frozen=True, forbid_unknown_fields=True):
    """The new secret, made when it is left out, and for how long the one before it signs as well."""

    value: Secret | None = None
    overlap_seconds: Annotated[int, Meta(ge=0, le=LONGEST_OVERLAP // SECOND)] = OVERLAP // SECOND


class SecretBody(Struct, frozen=True, forbid_unknown_fields=True):
    secret: SecretChange


class SecretView(Struct, frozen=True):
    """The secret that signs from now on, shown this once, and when the one before it ends."""

    value: str
    before_ends_at: InstantText


class SecretAnswer(Struct, frozen=True):
    secret: SecretView


class DeliveryView(Struct, frozen=True):
    """One notice on its way to one address; `status` and `error` are those of the last attempt.

    `subject` is the alert's or the payment's id, or the rule's name. `next_at` is there while it is
    pending, `delivered_at` once it is delivered.
    """

    id: str
    kind: NoticeKind
    subject: str
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


class DeliveryPage(Struct, frozen=True):
    deliveries: list[DeliveryView]
    cursor: NextCursor


@operation(
    "GET",
    "/v1/webhooks",
    "list_webhooks",
    tag=ACCOUNT,
    summary="List the webhooks",
    doc="Where notices are sent.",
    scope="settings:read",
    answers={200: Answer("All of them.")},
    refusals=(503,),
)
async def list_webhooks(request: Request) -> WebhookList:
    webhooks = request.account.webhooks
    return WebhookList([await webhook_view(request, webhooks[url]) for url in sorted(webhooks)])


@operation(
    "PUT",
    "/v1/webhooks",
    "set_webhook",
    tag=ACCOUNT,
    summary="Send notices to an address",
    doc=f"A new address, of at most {MAX_WEBHOOKS}, or a change of one that is there. It starts with "
    "`https://` and is a public one, both when it is set and whenever its name is resolved. A new one "
    "is told of what happens from now on. While it is paused, what is to be sent waits, at most "
    f"{outbox.MAX_WAITING:,} notices. Each delivery is signed with every secret.",
    scope="settings:write",
    demand="change",
    sent=Body(
        WebhookBody,
        {
            "webhook": Example(
                "alerts, and what a rule denied",
                {
                    "webhook": {
                        "url": "https://shop.example/alerts",
                        "secrets": ["an-example-secret-of-32-letters"],
                        "kinds": ["alert.raised", "payment.decided"],
                        "only": {"action": ["deny"], "rule": ["checkout"]},
                    }
                },
            ),
            "pause": Example(
                "a pause", {"webhook": {"url": "https://shop.example/alerts", "paused": True}}
            ),
        },
    ),
    answers={200: Answer("Notices are sent there.")},
    refusals=(503,),
)
async def set_webhook(request: Request) -> WebhookAnswer:
    key = request.key
    asked = (await read_json(request, SentWebhookBody)).webhook
    webhook, made = await put_webhook(request.engine, key.account, key.id, asked)
    return WebhookAnswer(await webhook_view(request, webhook, UNSET if made is None else made))


@operation(
    "DELETE",
    "/v1/webhooks",
    "remove_webhook",
    tag=ACCOUNT,
    summary="Send no more notices to an address",
    doc="Deliveries that are still pending are dropped, and its secrets are gone.",
    scope="settings:write",
    demand="change",
    answers={200: Answer("Nothing is sent there any more.")},
    refusals=(404, 503),
)
async def remove_webhook(
    request: Request,
    url: Annotated[
        str, query_parameter("The webhook's address.", example="https://shop.example/alerts")
    ] = "",
) -> WebhookRemoval:
    await request.perform(RemoveWebhook(request.account.name, url))
    return WebhookRemoval(WebhookAddress(url))


@operation(
    "POST",
    "/v1/webhooks/{id:str}/secret",
    "rotate_webhook_secret",
    tag=ACCOUNT,
    summary="Replace a webhook's secret",
    doc="Deliveries are signed with the new secret from now on, and until `before_ends_at` with the "
    "one before it as well, so that a receiver changes from one to the other without a gap.",
    scope="settings:write",
    demand="change",
    sent=Body(SecretBody, {"secret": Example("a day for the receiver", {"secret": {}})}),
    answers={200: Answer("The new secret.", SecretAnswer)},
    refusals=(404, 503),
)
async def rotate_webhook_secret(
    request: Request,
    id: WebhookId,  # noqa: A002 - the parameter has the name of its place in the path
) -> SecretAnswer:
    sent = (await read_json(request, SecretBody)).secret
    key, overlap = request.key, sent.overlap_seconds * SECOND
    new = await replace_secret(request.engine, key.account, key.id, id, sent.value, overlap)
    return SecretAnswer(SecretView(new.secret, show_instant(new.ends)))


@operation(
    "GET",
    "/v1/webhooks/deliveries",
    "list_deliveries",
    tag=ACCOUNT,
    summary="List all webhooks' deliveries, newest first",
    doc="Each notice on its way to each address, with its attempts.",
    scope="settings:read",
    answers={200: Answer("A page.")},
    refusals=(422, 503),
)
async def list_deliveries(
    request: Request, cursor: Cursor = None, limit: Limit = None
) -> DeliveryPage:
    return await _delivery_page(request, None, cursor, limit)


@operation(
    "GET",
    "/v1/webhooks/{id:str}/deliveries",
    "list_webhook_deliveries",
    tag=ACCOUNT,
    summary="List a webhook's deliveries, newest first",
    doc="Each notice on its way there, with its attempts; of those that are settled, the newest "
    f"{outbox.MAX_SETTLED:,}.",
    scope="settings:read",
    answers={200: Answer("A page.", DeliveryPage)},
    refusals=(404, 422, 503),
)
async def list_webhook_deliveries(
    request: Request,
    id: WebhookId,  # noqa: A002 - the parameter has the name of its place in the path
    cursor: Cursor = None,
    limit: Limit = None,
) -> DeliveryPage:
    return await _delivery_page(request, find_webhook(request.account, id).url, cursor, limit)


@operation(
    "POST",
    "/v1/webhooks/{id:str}/test",
    "test_webhook",
    tag=ACCOUNT,
    summary="Send a sample to a webhook",
    doc="A notice of nothing, which names `sample`, is sent once and signed as every other; the "
    "answer tells what the receiver said. A webhook is sent one at a time.",
    scope="settings:write",
    answers={200: Answer("It was sent.", SampleAnswer)},
    refusals=(404, 409, 422, 503),
)
async def try_webhook(
    request: Request,
    id: WebhookId,  # noqa: A002 - the parameter has the name of its place in the path
    kind: Annotated[
        str | None,
        query_parameter(
            "What the sample tells of; the first of the webhook's kinds when left out.",
            {"type": "string", "enum": [*NOTICE_KINDS]},
            "payment.decided",
        ),
    ] = None,
) -> SampleAnswer:
    engine, account = request.engine, request.key.account
    webhook, now = find_webhook(request.account, id), engine.clock()
    chosen = cast(
        "NoticeKind", read_choice("kind", kind, NOTICE_KINDS) or next(iter(webhook.kinds))
    )
    secrets = opened_secrets(engine.folder_key, account, webhook, now)
    turn = engine.locks.of("webhook", account, webhook.url)
    if turn.locked():
        raise Conflict("id", "a sample is on its way already: wait for its answer")
    async with turn:
        body = sample_body(chosen)
        status, error = await send_sample(engine.reach, webhook.url, secrets, body, now)
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
    delivery: DeliveryId,
) -> DeliveryAnswer:
    found = await send_again(request.engine, request.key.account, id, delivery)
    return DeliveryAnswer(delivery_view(request, found))


async def webhook_view(
    request: Request, webhook: Webhook, secret: str | UnsetType = UNSET
) -> WebhookView:
    engine, account = request.engine, request.key.account
    held = await engine.outbox.read(partial(outbox.backlog, account=account, url=webhook.url))
    return WebhookView(
        id=webhook_id(webhook.url),
        url=webhook.url,
        secrets=len(secrets_in_force(webhook, engine.clock())),
        kinds=list(webhook.kinds),
        only=WebhookFilter(webhook.only.action, webhook.only.rule, webhook.only.condition),
        paused=webhook.paused,
        waiting=held.waiting,
        given_up=held.given_up,
        secret=secret,
    )


def delivery_view(request: Request, delivery: Delivery) -> DeliveryView:
    pending = delivery.state == "pending"
    at = delivery.delivered_at
    spot = Spot(delivery.sequence, delivery.number)
    return DeliveryView(
        id=delivery.id,
        kind=delivery.kind,
        subject=delivery.subject or alert_id(request.engine.folder_key, delivery.account, spot),
        url=delivery.url,
        state=cast("DeliveryState", delivery.state),
        attempts=delivery.attempts,
        status=delivery.status,
        error=delivery.error,
        next_at=show_instant(delivery.next_at) if pending else None,
        delivered_at=None if at is None else show_instant(at),
    )


async def _delivery_page(
    request: Request, url: str | None, cursor: str | None, limit: str | None
) -> DeliveryPage:
    before, most = read_place(request, "cursor", cursor), read_limit(limit)
    account = request.key.account
    found = await request.engine.outbox.read(
        lambda c: outbox.deliveries(c, account, before, most, url)
    )
    return DeliveryPage(
        [delivery_view(request, delivery) for delivery in found],
        show_place(request, found[-1].sequence if len(found) >= most else None),
    )


ROUTES = (
    list_webhooks,
    set_webhook,
    remove_webhook,
    rotate_webhook_secret,
    list_deliveries,
    list_webhook_deliveries,
    try_webhook,
    redeliver,
)
