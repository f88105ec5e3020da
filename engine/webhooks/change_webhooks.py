"""Set, pause and remove webhooks and replace their secrets, for HTTP and commands alike."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Delivery
from tollkeeper.engine.monitors.webhook_reach import check_reach
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry import webhooks
from tollkeeper.engine.registry.changes import DecidedFilter, NoticeKind, WebhookSet
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.registry.webhooks import (
    OVERLAP,
    RequestedWebhook,
    SealSecret,
    find_webhook,
    new_secret,
    secret_owner,
    webhook_id,
)
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.webhook_secrets import settle_secrets


class RotatedWebhook(NamedTuple):
    """A webhook with its new secret, and when (µs) the former secret stops signing."""

    webhook: Webhook
    secret: str
    ends: int


async def put_webhook(
    engine: Engine, account: int, by: str, requested: RequestedWebhook
) -> tuple[Webhook, str | None]:
    """Set a webhook; returns it, and the secret that was generated for a new one without secrets.

    Raises `Invalid`, `JournalError`.
    """
    async with engine.changing:
        state = engine.state.accounts[account]
        made = None
        if requested.url not in state.webhooks and requested.secrets is None:
            made = new_secret()
            requested = replace(requested, secrets=(made,))
        change = webhooks.set_webhook(state, requested, _seal(engine, account, requested.url))
        check_reach(requested.url, engine.reach)
        webhook = await _record(engine, account, by, change)
    # The notices that waited while a webhook was paused are due now.
    engine.monitors.raised.set()
    return webhook, made


async def replace_secret(
    engine: Engine, account: int, by: str, id_: str, secret: str | None, overlap: int
) -> RotatedWebhook:
    """Sign with a new secret, generated unless given, and for `overlap` (µs) with the former one as
    well.

    Raises `NotFound`, `Invalid`, `JournalError`.
    """
    async with engine.changing:
        webhook = find_webhook(engine.state.accounts[account], id_)
        now = engine.clock()
        new = new_secret() if secret is None else secret
        seal = _seal(engine, account, webhook.url)
        change = webhooks.rotate_secret(webhook, new, seal, now + overlap, now)
        webhook = await _record(engine, account, by, change)
    return RotatedWebhook(webhook, new, now + overlap)


async def send_again(engine: Engine, account: int, id_: str, delivery: str) -> Delivery:
    """Send a delivery again, whatever its state. Raises `NotFound`, `JournalError`."""
    url = find_webhook(engine.state.accounts[account], id_).url
    now = engine.clock()
    due = await engine.outbox.write(lambda c: outbox.redeliver(c, account, url, delivery, now))
    if due is None:
        raise NotFound("delivery", "this webhook has no delivery of this id")
    engine.monitors.raised.set()
    return due


async def _record(engine: Engine, account: int, by: str, change: WebhookSet) -> Webhook:
    await make_change(engine, account, by, change)
    await settle_secrets(engine, account)
    return engine.state.accounts[account].webhooks[change.url]


def _seal(engine: Engine, account: int, url: str) -> SealSecret:
    return partial(engine.folder_key.seal, owner=secret_owner(account, url))


class SetWebhook(AccountVerb, frozen=True):
    """Send notices to an address. Secrets can't be given here: a verb's arguments may be written to
    the folder in clear."""

    url: str
    kinds: tuple[NoticeKind, ...] | None = None
    only: DecidedFilter | None = None
    paused: bool | None = None

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        requested = RequestedWebhook(self.url, kinds=self.kinds, only=self.only, paused=self.paused)
        await put_webhook(engine, self.number(engine), author, requested)
        return Effect()


class PauseWebhook(AccountVerb, frozen=True):
    """Hold back an address's notices until the webhook is resumed."""

    url: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await _set_paused(engine, self.number(engine), author, self.url, True)
        return Effect()


class ResumeWebhook(AccountVerb, frozen=True):
    """Send the notices that waited while a webhook was paused, and new ones."""

    url: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        await _set_paused(engine, self.number(engine), author, self.url, False)
        return Effect()


class RemoveWebhook(AccountVerb, frozen=True):
    """Remove a webhook and its secrets. Raises `NotFound`."""

    url: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        account, url = self.number(engine), self.url
        async with engine.changing:
            change = webhooks.remove_webhook(engine.state.accounts[account], url)
            await make_change(engine, account, author, change)
            await settle_secrets(engine, account)
        await engine.outbox.write(partial(outbox.forget_webhook, account=account, url=url))
        return Effect()


class RotateSecret(AccountVerb, frozen=True):
    """Sign with a new secret, and for `overlap` (µs) with the former one as well."""

    url: str
    overlap: int = OVERLAP

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        number, id_ = self.number(engine), webhook_id(self.url)
        await replace_secret(engine, number, author, id_, None, self.overlap)
        return Effect()


class Redeliver(AccountVerb, frozen=True):
    """Send a delivery again, whatever became of it."""

    url: str
    delivery: str

    async def perform(self, engine: Engine, _author: str, _progress: Progress) -> Effect:
        await send_again(engine, self.number(engine), webhook_id(self.url), self.delivery)
        return Effect()


async def _set_paused(engine: Engine, account: int, by: str, url: str, paused: bool) -> None:
    find_webhook(engine.state.accounts[account], webhook_id(url))
    await put_webhook(engine, account, by, RequestedWebhook(url, paused=paused))
