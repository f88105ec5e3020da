from __future__ import annotations

import pytest

from tollkeeper.engine.registry.errors import Invalid, NotFound
from tollkeeper.engine.registry.webhooks import MAX_WEBHOOKS, remove_webhook, set_webhook

SECRET = "a secret of the merchant"


def test_a_webhook_is_set_changed_and_removed(registry):
    url = "https://hooks.example.com/alerts?team=risk"
    registry.record(set_webhook(registry.account, url, [SECRET]))
    registry.record(set_webhook(registry.account, url, [SECRET, SECRET[::-1]]))
    assert registry.account.webhooks[url].secrets == (SECRET, SECRET[::-1])
    registry.record(remove_webhook(registry.account, url))
    assert not registry.account.webhooks
    with pytest.raises(NotFound):
        remove_webhook(registry.account, url)


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
        set_webhook(registry.account, url, [SECRET])
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
        set_webhook(registry.account, "http://127.0.0.1:9000/", secrets)
    assert [v.field for v in refused.value.violations] == [field]


def test_an_account_has_a_bounded_number_of_webhooks(registry):
    for number in range(MAX_WEBHOOKS):
        registry.record(set_webhook(registry.account, f"https://example.com/{number}", [SECRET]))
    with pytest.raises(Invalid, match="at most 10 webhooks"):
        set_webhook(registry.account, "https://example.com/more", [SECRET])
    set_webhook(registry.account, "https://example.com/0", [SECRET])
