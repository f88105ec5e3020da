from __future__ import annotations

import pytest

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.registry.changes import DecidedFilter, SealedSecret
from tollkeeper.engine.registry.errors import Invalid, NotFound
from tollkeeper.engine.registry.webhooks import (
    MAX_WEBHOOKS,
    RequestedWebhook,
    remove_webhook,
    rotate_secret,
    secrets_in_force,
    set_webhook,
)
from tollkeeper.tests.engine.registry.conftest import NOON

SECRET = "a secret of the merchant"
URL = "https://hooks.example.com/alerts?team=risk"


def put(registry, url=URL, secrets=(SECRET,), **asked):
    """The change, in which a secret is sealed by turning it round."""
    return set_webhook(registry.account, RequestedWebhook(url, secrets, **asked), turned)


def turned(secret):
    return secret[::-1].encode()


def test_a_webhook_is_set_changed_and_removed(registry):
    registry.record(put(registry))
    assert [*registry.account.webhooks[URL].kinds] == ["alert.raised"]
    registry.record(put(registry, secrets=(SECRET, "another secret of theirs")))
    sealed = [each.sealed for each in registry.account.webhooks[URL].secrets]
    assert sealed == [turned(SECRET), turned("another secret of theirs")]
    registry.record(remove_webhook(registry.account, URL))
    assert not registry.account.webhooks
    with pytest.raises(NotFound):
        remove_webhook(registry.account, URL)


def test_what_is_left_out_of_a_change_stays_as_it_is(registry):
    only = DecidedFilter(action=("deny",), rule=("checkout",))
    registry.record(put(registry, kinds=("payment.decided", "label.created"), only=only))
    before = registry.account.webhooks[URL]
    registry.record(put(registry, secrets=None, paused=True))
    after = registry.account.webhooks[URL]
    assert (after.kinds, after.only, after.secrets) == (before.kinds, only, before.secrets)
    assert (before.paused, after.paused) == (False, True)


def test_a_kind_is_wanted_from_the_change_on_that_brought_it(registry):
    first = registry.record(put(registry)).sequence
    second = registry.record(put(registry, kinds=("payment.updated", "alert.raised"))).sequence
    kinds = registry.account.webhooks[URL].kinds
    assert kinds == {"alert.raised": first, "payment.updated": second}


def test_a_secret_that_is_replaced_signs_until_its_overlap_ends(registry):
    registry.record(put(registry))
    for number in range(3):
        change = rotate_secret(
            registry.account.webhooks[URL], f"{SECRET} {number}", turned, NOON + DAY, NOON
        )
        registry.record(change)
    webhook = registry.account.webhooks[URL]
    assert webhook.secrets == (
        SealedSecret(turned(f"{SECRET} 1"), NOON + DAY),
        SealedSecret(turned(f"{SECRET} 2")),
    )
    assert secrets_in_force(webhook, NOON + DAY - 1) == webhook.secrets
    assert secrets_in_force(webhook, NOON + DAY) == webhook.secrets[1:]


def test_without_an_overlap_the_new_secret_signs_alone(registry):
    registry.record(put(registry))
    webhook = registry.account.webhooks[URL]
    change = rotate_secret(webhook, SECRET * 2, turned, NOON, NOON)
    assert change.secrets == (SealedSecret(turned(SECRET * 2)),)
    with pytest.raises(Invalid) as refused:
        rotate_secret(webhook, "short", turned, NOON, NOON)
    assert [v.field for v in refused.value.violations] == ["secret.value"]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kinds": ()}, "webhook.kinds"),
        ({"only": DecidedFilter(rule=("gate",) * 21)}, "webhook.only.rule"),
        ({"only": DecidedFilter(condition=("busy",) * 21)}, "webhook.only.condition"),
    ],
)
def test_what_a_webhook_wants_is_bounded(registry, asked, field):
    with pytest.raises(Invalid) as refused:
        put(registry, **asked)
    assert [v.field for v in refused.value.violations] == [field]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hooks.example.com",
        "ftp://hooks.example.com",
        "file:///etc/passwd",
        "https://",
        "https://[::1",
        "https://example.com:99999/",
        "https://me:word@example.com/",
        "https://example.com/a b",
        "https://example.com/\r\nHost: other",
        "https://exämple.com/",
        "https://example.com/" + "x" * 2048,
    ],
)
def test_an_address_that_is_none_is_refused(registry, url):
    with pytest.raises(Invalid) as refused:
        put(registry, url)
    assert [v.field for v in refused.value.violations] == ["webhook.url"]


@pytest.mark.parametrize(
    ("secrets", "field"),
    [
        ([], "webhook.secrets"),
        (["short"], "webhook.secrets[0]"),
        ([SECRET, "x" * 257], "webhook.secrets[1]"),
        ([SECRET] * 3, "webhook.secrets"),
    ],
)
def test_one_or_two_long_secrets_are_needed(registry, secrets, field):
    with pytest.raises(Invalid) as refused:
        put(registry, "http://127.0.0.1:9000/", tuple(secrets))
    assert [v.field for v in refused.value.violations] == [field]


def test_an_account_has_a_bounded_number_of_webhooks(registry):
    for number in range(MAX_WEBHOOKS):
        registry.record(put(registry, f"https://example.com/{number}"))
    with pytest.raises(Invalid, match="at most 10 webhooks"):
        put(registry, "https://example.com/more")
    put(registry, "https://example.com/0")
