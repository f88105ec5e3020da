"""Where an account's alerts are sent."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import urlsplit

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.registry.changes import WebhookRemoved, WebhookSet
from tollkeeper.engine.registry.errors import Invalid, NotFound
from tollkeeper.engine.registry.state import Account, Webhook

MAX_WEBHOOKS = 10
MAX_URL = 2048
MIN_SECRET = 16
MAX_SECRET = 256


def set_webhook(account: Account, url: str, secrets: Sequence[str]) -> WebhookSet:
    """Sends alerts to `url`, signed with one secret, or two while one replaces the other.

    Raises `Invalid` with all that is wrong.
    """
    violations = _check_url(url)
    if not 1 <= len(secrets) <= 2:
        message = "a webhook has one secret, or two while one replaces the other"
        violations.append(Violation("webhook.secrets", "out_of_range", message))
    for place, secret in enumerate(secrets):
        if not MIN_SECRET <= len(secret) <= MAX_SECRET:
            message = f"a secret has {MIN_SECRET} to {MAX_SECRET} characters"
            violations.append(Violation(f"webhook.secrets[{place}]", "out_of_range", message))
    if url not in account.webhooks and len(account.webhooks) >= MAX_WEBHOOKS:
        message = f"an account has at most {MAX_WEBHOOKS} webhooks"
        violations.append(Violation("webhook.url", "out_of_range", message))
    if violations:
        raise Invalid(violations)
    return WebhookSet(url, tuple(secrets))


def remove_webhook(account: Account, url: str) -> WebhookRemoved:
    """Raises `NotFound`."""
    if url not in account.webhooks:
        raise NotFound("webhook.url", "there is no webhook with this address")
    return WebhookRemoved(url)


def webhook_id(url: str) -> str:
    """What a path names the webhook of an address by."""
    return "wh_" + hashlib.sha256(url.encode()).hexdigest()[:16]


def find_webhook(account: Account, id_: str) -> Webhook:
    """The webhook with this id. Raises `NotFound`."""
    for url, webhook in account.webhooks.items():
        if webhook_id(url) == id_:
            return webhook
    raise NotFound("webhook", "there is no webhook with this id")


def _check_url(url: str) -> list[Violation]:
    if len(url) > MAX_URL:
        message = f"an address has at most {MAX_URL} characters"
        return [Violation("webhook.url", "too_long", message)]
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        message = "an address starts with `https://` or `http://` and names a host"
        return [Violation("webhook.url", "invalid_format", message)]
    if parts.username is not None:
        message = "an address holds no user name or password"
        return [Violation("webhook.url", "invalid_format", message)]
    return []
