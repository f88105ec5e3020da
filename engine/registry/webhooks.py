"""Webhooks: the addresses that an account's notices are sent to."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.registry.changes import (
    DecidedFilter,
    NoticeKind,
    SealedSecret,
    WebhookRemoved,
    WebhookSet,
)
from tollkeeper.engine.registry.errors import Invalid, NotFound
from tollkeeper.engine.registry.state import Account, Webhook

MAX_WEBHOOKS = 10
MAX_URL = 2048
MIN_SECRET = 16
MAX_SECRET = 256
MAX_FILTERED = 20
"""The most rules, and the most conditions, in a webhook's filter."""
OVERLAP: Final = DAY
LONGEST_OVERLAP: Final = 7 * DAY
"""How long (µs) a replaced secret still signs: by default, and at most."""
_PREFIX = "whsec_"
_SECRET_BYTES = 32

SealSecret: TypeAlias = Callable[[str], bytes]


class RequestedWebhook(Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook to set; members left out keep their value, or have the default in a new one."""

    url: Annotated[str, Meta(examples=["https://shop.example/notices"])]
    secrets: tuple[str, ...] | None = None
    kinds: tuple[NoticeKind, ...] | None = None
    only: DecidedFilter | None = None
    paused: bool | None = None


def set_webhook(account: Account, requested: RequestedWebhook, seal: SealSecret) -> WebhookSet:
    """Set a webhook; its notices are signed with one secret, or two while one replaces the other.

    A new webhook gets alerts unless `kinds` says otherwise. Raises `Invalid` with all violations.
    """
    webhook = account.webhooks.get(requested.url)
    violations = [*_check_url(requested.url), *_check_secrets(requested), *_check_wants(requested)]
    if webhook is None and len(account.webhooks) >= MAX_WEBHOOKS:
        message = f"an account has at most {MAX_WEBHOOKS} webhooks"
        violations.append(Violation("webhook.url", "out_of_range", message))
    if violations:
        raise Invalid(violations)
    before = WebhookSet(requested.url, ()) if webhook is None else as_set(webhook)
    return WebhookSet(
        url=requested.url,
        secrets=before.secrets
        if requested.secrets is None
        else tuple(SealedSecret(seal(each)) for each in requested.secrets),
        kinds=before.kinds if requested.kinds is None else tuple(dict.fromkeys(requested.kinds)),
        only=before.only if requested.only is None else requested.only,
        paused=before.paused if requested.paused is None else requested.paused,
    )


def rotate_secret(
    webhook: Webhook, secret: str, seal: SealSecret, ends: int, now: int
) -> WebhookSet:
    """Sign with a new secret, and with the former one as well until `ends`; times in µs.

    Raises `Invalid` for an invalid secret.
    """
    if not MIN_SECRET <= len(secret) <= MAX_SECRET:
        raise Invalid([_bad_secret("secret.value")])
    before = [
        each if each.until is not None and each.until <= ends else SealedSecret(each.sealed, ends)
        for each in secrets_in_force(webhook, now)
        if isinstance(each, SealedSecret)
    ]
    change = as_set(webhook)
    kept = before[-1:] if ends > now else []
    return WebhookSet(
        change.url, (*kept, SealedSecret(seal(secret))), change.kinds, change.only, change.paused
    )


def remove_webhook(account: Account, url: str) -> WebhookRemoved:
    """Raises `NotFound`."""
    if url not in account.webhooks:
        raise NotFound("webhook.url", "there is no webhook with this address")
    return WebhookRemoved(url)


def as_set(webhook: Webhook) -> WebhookSet:
    """The change that sets the webhook as it is."""
    return WebhookSet(
        webhook.url, webhook.secrets, tuple(webhook.kinds), webhook.only, webhook.paused
    )


def secrets_in_force(webhook: Webhook, now: int) -> tuple[SealedSecret | str, ...]:
    """Those that sign at `now` (µs), the newest last."""
    return tuple(
        each
        for each in webhook.secrets
        if isinstance(each, str) or each.until is None or now < each.until
    )


def opened_secrets(key: FolderKey, account: int, webhook: Webhook, now: int) -> Sequence[str]:
    """The decrypted secrets that sign at `now` (µs), without those that another key sealed."""
    owner = secret_owner(account, webhook.url)
    opened = (
        each if isinstance(each, str) else key.unseal(each.sealed, owner)
        for each in secrets_in_force(webhook, now)
    )
    return [each for each in opened if each is not None]


def secret_owner(account: int, url: str) -> str:
    """The owner that a webhook's secret is sealed for: it can't be used for another webhook."""
    return f"{account} {url}"


def new_secret() -> str:
    """A new random secret."""
    return _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def webhook_id(url: str) -> str:
    """The id of a webhook in paths, derived from its address."""
    return "wh_" + hashlib.sha256(url.encode()).hexdigest()[:16]


def find_webhook(account: Account, id_: str) -> Webhook:
    """The webhook with this id. Raises `NotFound`."""
    for url, webhook in account.webhooks.items():
        if webhook_id(url) == id_:
            return webhook
    raise NotFound("webhook", "there is no webhook with this id")


def _check_secrets(requested: RequestedWebhook) -> list[Violation]:
    if requested.secrets is None:
        return []
    violations = []
    if not 1 <= len(requested.secrets) <= 2:
        message = "a webhook has one secret, or two while one replaces the other"
        violations.append(Violation("webhook.secrets", "out_of_range", message))
    return violations + [
        _bad_secret(f"webhook.secrets[{place}]")
        for place, secret in enumerate(requested.secrets)
        if not MIN_SECRET <= len(secret) <= MAX_SECRET
    ]


def _bad_secret(field: str) -> Violation:
    message = f"a secret has {MIN_SECRET} to {MAX_SECRET} characters"
    return Violation(field, "out_of_range", message)


def _check_wants(requested: RequestedWebhook) -> list[Violation]:
    violations = []
    if requested.kinds == ():
        message = "a webhook wants one kind of notice at least; `paused` holds all of them"
        violations.append(Violation("webhook.kinds", "out_of_range", message))
    if requested.only is not None:
        violations += [
            Violation(f"webhook.only.{name}", "too_long", f"at most {MAX_FILTERED} are named")
            for name in ("action", "rule", "condition")
            if len(getattr(requested.only, name)) > MAX_FILTERED
        ]
    return violations


def _check_url(url: str) -> list[Violation]:
    if len(url) > MAX_URL:
        message = f"an address has at most {MAX_URL} characters"
        return [Violation("webhook.url", "too_long", message)]
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http or not url.isascii() or not url.isprintable() or " " in url:
        message = "an address starts with `https://` or `http://` and names a host"
        return [Violation("webhook.url", "invalid_format", message)]
    if parts.username is not None:
        message = "an address holds no user name or password"
        return [Violation("webhook.url", "invalid_format", message)]
    return []
