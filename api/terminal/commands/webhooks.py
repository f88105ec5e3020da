"""`toll webhooks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import rich_click as click

from tollkeeper.api.terminal.folder import perform, read_account, refusals
from tollkeeper.api.terminal.options import account_option, author_option, data_option, json_option
from tollkeeper.api.terminal.output import refuse, say, show_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tollkeeper.engine.decision import Action
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.monitors.webhook_reach import Reach
    from tollkeeper.engine.registry.changes import NoticeKind
    from tollkeeper.engine.registry.state import Account

_KINDS = ("alert.raised", "payment.decided", "payment.updated", "label.created", "rule.published")
_SECONDS_A_DAY = 86_400
_MICROSECONDS = 1_000_000


@click.group(panel="Accounts")
def webhooks() -> None:
    """Addresses that get notices of alerts, decisions, updates, labels and publications."""


@webhooks.command("list")
@account_option
@json_option
@data_option
def list_webhooks(account: str, as_json_: bool, data: JournalSource) -> None:
    """List where notices are sent, and how many wait or were given up."""
    from tollkeeper.engine.monitors.outbox import backlog
    from tollkeeper.engine.monitors.outbox_file import read_outbox
    from tollkeeper.engine.registry.webhooks import webhook_id

    known = read_account(data, account)
    rows = []
    for url, webhook in sorted(known.webhooks.items()):
        with refusals():
            held = read_outbox(data, lambda c, url=url: backlog(c, known.number, url))  # type: ignore[misc]
        only = webhook.only
        wanted = "; ".join(
            f"{name} {', '.join(chosen)}"
            for name, chosen in (
                ("action", only.action),
                ("rule", only.rule),
                ("condition", only.condition),
            )
            if chosen
        )
        state = "paused" if webhook.paused else "sending"
        kinds = " ".join(webhook.kinds)
        rows.append((webhook_id(url), url, kinds, wanted, state, held.waiting, held.given_up))
    titles = ("id", "url", "kinds", "only", "state", "waiting", "given_up")
    show_rows(titles, rows, as_json_)


@webhooks.command("set")
@click.argument("url")
@account_option
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(_KINDS),
    help="The kind of notices; repeat it for more. By default a new address gets alerts.",
)
@click.option(
    "--action",
    "actions",
    multiple=True,
    type=click.Choice(("allow", "challenge", "deny")),
    help="Only decisions with this action.",
)
@click.option("--rule", "rules", multiple=True, help="Only decisions by this rule.")
@click.option(
    "--condition", "conditions", multiple=True, help="Only decisions by the condition with this id."
)
@author_option
@data_option
def set_webhook(
    url: str,
    account: str,
    kinds: tuple[NoticeKind, ...],
    actions: tuple[Action, ...],
    rules: tuple[str, ...],
    conditions: tuple[str, ...],
    data: JournalSource,
) -> None:
    """Send notices to URL, or change which; the secret of a new one is printed alone."""
    from tollkeeper.engine.registry.changes import DecidedFilter
    from tollkeeper.engine.webhooks.change_webhooks import SetWebhook

    new = url not in read_account(data, account).webhooks
    only = DecidedFilter(actions, rules, conditions)
    chosen = only if actions or rules or conditions else None
    perform(data, SetWebhook(account, url, kinds or None, chosen))
    if new:
        print(_secrets(data, account, url)[-1])  # noqa: T201 - the secret alone, for a script


@webhooks.command("pause")
@click.argument("url")
@account_option
@author_option
@data_option
def pause_webhook(url: str, account: str, data: JournalSource) -> None:
    """Hold back the notices to URL until it is resumed."""
    from tollkeeper.engine.webhooks.change_webhooks import PauseWebhook

    perform(data, PauseWebhook(account, url))
    say(f"what is to be sent to {url} waits")


@webhooks.command("resume")
@click.argument("url")
@account_option
@author_option
@data_option
def resume_webhook(url: str, account: str, data: JournalSource) -> None:
    """Send the notices that waited for URL, and new ones."""
    from tollkeeper.engine.webhooks.change_webhooks import ResumeWebhook

    perform(data, ResumeWebhook(account, url))
    say(f"notices are sent to {url} again")


@webhooks.command("remove")
@click.argument("url")
@account_option
@author_option
@data_option
def remove_webhook(url: str, account: str, data: JournalSource) -> None:
    """Remove the webhook URL and its secrets."""
    from tollkeeper.engine.webhooks.change_webhooks import RemoveWebhook

    perform(data, RemoveWebhook(account, url))
    say(f"nothing is sent to {url} any more")


@webhooks.command("rotate")
@click.argument("url")
@account_option
@click.option(
    "--overlap-seconds",
    type=click.IntRange(0, 7 * _SECONDS_A_DAY),
    default=_SECONDS_A_DAY,
    show_default=True,
    help="For how many seconds the former secret signs as well.",
)
@author_option
@data_option
def rotate_secret(url: str, account: str, overlap_seconds: int, data: JournalSource) -> None:
    """Sign with a new secret, which is printed alone."""
    from tollkeeper.engine.webhooks.change_webhooks import RotateSecret

    perform(data, RotateSecret(account, url, overlap_seconds * _MICROSECONDS))
    print(_secrets(data, account, url)[-1])  # noqa: T201 - the secret alone, for a script


@webhooks.command("deliveries")
@click.argument("url")
@account_option
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="How many at most.",
)
@json_option
@data_option
def list_deliveries(
    url: str, account: str, limit: int, as_json_: bool, data: JournalSource
) -> None:
    """List the deliveries to URL, newest first."""
    from tollkeeper.engine.instants import show_instant
    from tollkeeper.engine.monitors.outbox import deliveries
    from tollkeeper.engine.monitors.outbox_file import read_outbox

    known = read_account(data, account)
    with refusals():
        found = read_outbox(data, lambda c: deliveries(c, known.number, None, limit, url))
    rows = [
        (
            each.id,
            each.kind,
            each.subject,
            each.state,
            each.attempts,
            each.status,
            each.error,
            show_instant(each.next_at) if each.state == "pending" else None,
        )
        for each in found
    ]
    titles = ("id", "kind", "subject", "state", "attempts", "status", "error", "next_at")
    show_rows(titles, rows, as_json_)


@webhooks.command("redeliver")
@click.argument("url")
@click.argument("delivery")
@account_option
@author_option
@data_option
def redeliver(url: str, delivery: str, account: str, data: JournalSource) -> None:
    """Send DELIVERY to URL again, whatever its state."""
    from tollkeeper.engine.webhooks.change_webhooks import Redeliver

    perform(data, Redeliver(account, url, delivery))
    say(f"{delivery} is sent again by the running service, or by the next")


@webhooks.command("test")
@click.argument("url")
@account_option
@click.option("--kind", type=click.Choice(_KINDS), help="The kind of the sample.")
@click.option(
    "--reach",
    type=click.Choice(("public", "any")),
    default="public",
    show_default=True,
    envvar="TOLL_REACH",
    show_envvar=True,
    help="Where webhooks may go.",
)
@data_option
def test_webhook(
    url: str, account: str, kind: NoticeKind | None, reach: Reach, data: JournalSource
) -> None:
    """Send a sample to URL and print its answer; exits 1 when it is not accepted."""
    import asyncio

    from tollkeeper.api.http.notices import sample_body
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.webhooks.delivery import send_sample

    secrets, known = _secrets(data, account, url), read_account(data, account)
    chosen = kind or next(iter(known.webhooks[url].kinds))
    body = sample_body(cast("NoticeKind", chosen))
    status, error = asyncio.run(send_sample(reach, known.number, url, secrets, body, now()))
    if status is None or not 200 <= status < 300:
        refuse(f"not taken: {error or f'the receiver answered {status}'}")
    say(f"taken: the receiver answered {status}")


def _secrets(data: JournalSource, account: str, url: str) -> Sequence[str]:
    """Return the secrets that sign for an address now, the newest last."""
    from tollkeeper.engine.folder_key import open_folder_key
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.journal.source import key_folder_of
    from tollkeeper.engine.registry.webhooks import find_webhook, opened_secrets, webhook_id

    with refusals():
        known: Account = read_account(data, account)
        webhook = find_webhook(known, webhook_id(url))
        return opened_secrets(open_folder_key(key_folder_of(data)), known.number, webhook, now())
