"""The journal keeps webhooks' secrets encrypted, and only while they sign.

A secret that was replaced, that belonged to a removed webhook, or whose overlap has ended is taken
out of the entries that held it. Unencrypted secrets of earlier releases are encrypted in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.registry.changes import (
    RecordedChange,
    SealedSecret,
    WebhookSet,
    decode_change,
    encode_change,
)
from tollkeeper.engine.registry.past_states import configuration_at, recorded_changes
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.registry.webhooks import secret_owner, secrets_in_force
from tollkeeper.engine.runtime import Engine


async def settle_secrets(engine: Engine, account: int) -> None:
    """Remove from the journal all of the account's secrets but those that sign, and seal these.

    Raises `JournalError`; calling it again does what is left.
    """
    known, now = engine.state.accounts[account], engine.clock()
    await engine.journal.rewrite(
        account, _settle_entry(known, engine.folder_key, now), kinds=(Kind.CHANGE,)
    )


async def settle_stored_secrets(engine: Engine) -> None:
    """Settle the secrets of every account that needs it, and put the sealed ones into the state."""
    unsettled = await engine.journal.query(partial(_find_unsettled, engine, engine.clock()))
    for account in unsettled:
        await settle_secrets(engine, account)
    if unsettled:
        engine.state = await engine.journal.query(configuration_at)


def _find_unsettled(engine: Engine, now: int, connection: SqlConnection) -> set[int]:
    return {
        each.account
        for each in _holding_secrets(recorded_changes(reads.changes(connection, 0)))
        if (known := engine.state.accounts.get(each.account)) is not None
        and _keep_secrets(known, each, engine.folder_key, now) != each.change
    }


def has_outlived_secret(account: Account, now: int) -> bool:
    """Whether the journal holds a secret of the account that no longer signs at `now` (µs)."""
    return any(
        len(secrets_in_force(webhook, now)) < len(webhook.secrets)
        for webhook in account.webhooks.values()
    )


def _settle_entry(account: Account, key: FolderKey, now: int) -> Callable[[Entry], Entry]:
    def settle(entry: Entry) -> Entry:
        recorded = decode_change(entry)
        for each in _holding_secrets([recorded]):
            kept = _keep_secrets(account, each, key, now)
            if kept != each.change:
                return entry._replace(body=encode_change(each.by, kept, each.request))
        return entry

    return settle


def _holding_secrets(changes: Iterable[RecordedChange]) -> Iterator[RecordedChange]:
    for recorded in changes:
        if isinstance(recorded.change, WebhookSet) and recorded.change.secrets:
            yield recorded


def _keep_secrets(
    account: Account, recorded: RecordedChange, key: FolderKey, now: int
) -> WebhookSet:
    """The recorded change with only the secrets that the journal should keep, sealed."""
    change = recorded.change
    assert isinstance(change, WebhookSet)
    webhook = account.webhooks.get(change.url)
    if webhook is None or webhook.changed != recorded.sequence:
        return replace(change, secrets=())
    owner = secret_owner(account.number, change.url)
    sealed = (
        SealedSecret(key.seal(each, owner)) if isinstance(each, str) else each
        for each in secrets_in_force(webhook, now)
    )
    return replace(change, secrets=tuple(sealed))
