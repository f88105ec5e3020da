"""Send the outbox's notices: signed, one at a time to each address, retried until accepted.

A notice is delivered at least once; its id lets a receiver recognise repetitions. A 2xx response
accepts it. After anything else, redirects included, it is retried: after a second, then twice as
long each time, up to an hour, as long as the webhook exists and the notice's subject is kept. After
a failure the address gets no other notices for up to half a minute, so that it does not slow the
others.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from secrets import SystemRandom
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import httpcore
from msgspec.structs import replace

from tollkeeper.engine.enter_alerts import enter_missed, write_entered_if_due
from tollkeeper.engine.folder_key import FolderKey
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.journal.damage import UNREADABLE
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Alert, Delivery
from tollkeeper.engine.monitors.webhook_reach import Reach, connections, resolving_for
from tollkeeper.engine.registry.webhooks import opened_secrets
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.webhooks.follow import put_notices

SECOND = 1_000_000
"""In microseconds."""

FIRST_WAIT = SECOND
LONGEST_WAIT = 3600 * SECOND
LONGEST_REST = 30 * SECOND
"""The longest pause (µs) of an address after a failure."""
TIMEOUT_S = 10.0
_POLL_S = 0.5
"""The longest time between two polls of the outbox."""
_TRIM_S = 10.0
"""The time between two checks of how many rows each webhook has in the outbox."""
_TURN = 10 * SECOND
"""How long (µs) an address may be sent to before another one gets its place: some are slow."""
_MOST_ADDRESSES = 50
"""The most addresses that are sent to at the same time."""
_MOST_OF_ACCOUNT = 5
"""The same for one account."""
_MOST_FAILING = 25
"""The same for addresses whose last attempt failed, so that receivers that hang leave places for
others."""
MAX_ANSWER = 64 * 1024
"""The most bytes of a response's body that are read; its contents are ignored."""

SAMPLE_ID: Final = "sample"
"""The id of sample deliveries, which no event caused."""
_SEALED_ELSEWHERE = (
    "its secret was sealed with another `folder.key`: put that back, or set a new secret"
)

MakeBody: TypeAlias = Callable[[FolderKey, Entry | Alert], bytes]
"""Makes the body of a notice about a journal entry or an alert."""
_Target: TypeAlias = tuple[int, str]
"""An account, and the address of one of its webhooks."""

_chance = SystemRandom()


@dataclass
class _UnderWay:
    """The deliveries under way. `failures` counts an address's failures in a row; `rests` says until
    when (µs) it pauses after one, or since when it has waited for another turn.
    """

    engine: Engine
    pool: httpcore.AsyncConnectionPool
    make_body: MakeBody
    sending: dict[_Target, asyncio.Task[None]] = field(default_factory=dict)
    failures: dict[_Target, int] = field(default_factory=dict)
    rests: dict[_Target, int] = field(default_factory=dict)


async def deliver(engine: Engine, make_body: MakeBody) -> None:
    """Send what is due, until cancelled; no receiver's failure ends it."""
    async with connections(engine.reach) as pool:
        under_way = _UnderWay(engine, pool, make_body)
        trimming = asyncio.create_task(_keep_trimmed(engine))
        is_held_up = False
        try:
            while True:
                try:
                    await enter_missed(engine)
                    await put_notices(engine)
                    await _start_due(under_way)
                    is_held_up = False
                except JournalError as error:
                    if not is_held_up:
                        get_logger().error("deliveries_held_up", reason=str(error))
                    is_held_up = True
                    await asyncio.sleep(_POLL_S)
        finally:
            tasks = [trimming, *under_way.sending.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def send_sample(
    reach: Reach, account: int, url: str, secrets: Sequence[str], body: bytes, now: int
) -> tuple[int | None, str | None]:
    """Send a sample notice; returns the response's status, or what went wrong. `now` in µs.

    It is sent once, at once, and not stored.
    """
    resolving_for.set(account)
    async with connections(reach) as pool:
        return await _post(pool, url, secrets, SAMPLE_ID, body, now)


async def _start_due(under_way: _UnderWay) -> None:
    """Start the deliveries that are due, then wait for new ones, at most `_POLL_S`."""
    engine, sending = under_way.engine, under_way.sending
    engine.monitors.raised.clear()
    now = engine.clock()
    due = await engine.outbox.read(lambda c: outbox.due_addresses(c, now))
    # The address that has waited longest comes first, so that none waits for ever.
    for target in sorted(due, key=lambda target: under_way.rests.get(target, 0)):
        is_paused = now < under_way.rests.get(target, 0)
        if target in sending or is_paused or not _has_place(under_way, target):
            continue
        if not _is_held_back(engine, *target):
            sending[target] = asyncio.create_task(_send_due(under_way, *target))
            sending[target].add_done_callback(lambda _, target=target: sending.pop(target))  # type: ignore[misc]
    try:
        async with asyncio.timeout(_POLL_S):
            await engine.monitors.raised.wait()
    except TimeoutError:
        await write_entered_if_due(engine)


def _has_place(under_way: _UnderWay, target: _Target) -> bool:
    """Whether one address more may be sent to now."""
    sending, failures = under_way.sending, under_way.failures
    if len(sending) >= _MOST_ADDRESSES:
        return False
    if sum(account == target[0] for account, _ in sending) >= _MOST_OF_ACCOUNT:
        return False
    return target not in failures or sum(each in failures for each in sending) < _MOST_FAILING


def _is_held_back(engine: Engine, number: int, url: str) -> bool:
    """Whether due notices wait because the account is suspended or the webhook paused."""
    account = engine.state.accounts.get(number)
    if account is None:
        return False
    webhook = account.webhooks.get(url)
    return account.suspended_at is not None or (webhook is not None and webhook.paused)


async def _send_due(under_way: _UnderWay, account: int, url: str) -> None:
    """Send due notices to one address, one after the other, until one fails or its turn is over."""
    engine, until = under_way.engine, under_way.engine.clock() + _TURN
    resolving_for.set(account)
    try:
        while not _is_held_back(engine, account, url):
            due = await engine.outbox.read(
                partial(outbox.next_due, account=account, url=url, now=engine.clock())
            )
            if due is None:
                under_way.rests.pop((account, url), None)
                return
            if engine.clock() >= until:
                under_way.rests[account, url] = until
                return
            changed = await _send(under_way, due)
            await engine.outbox.write(partial(outbox.set_delivery, sent=due, changed=changed))
            get_logger().info(
                "delivery",
                account=account,
                delivery=due.id,
                kind=due.kind,
                state=changed.state,
                status=changed.status,
                error=changed.error,
            )
            if changed.state == "pending":
                failures = under_way.failures.get((account, url), 0)
                under_way.failures[account, url] = failures + 1
                under_way.rests[account, url] = engine.clock() + _wait(failures, LONGEST_REST)
                return
            under_way.failures.pop((account, url), None)
    except JournalError as error:
        get_logger().error("deliveries_held_up", account=account, reason=str(error))
        await asyncio.sleep(_POLL_S)


async def _send(under_way: _UnderWay, due: Delivery) -> Delivery:
    """Make one attempt; returns the delivery's new state. Raises `JournalError`."""
    engine = under_way.engine
    account = engine.state.accounts.get(due.account)
    webhook = None if account is None else account.webhooks.get(due.url)
    occasion = None if webhook is None else await _read_occasion(engine, due)
    if webhook is None or occasion is None:
        return replace(due, state="dropped", next_at=engine.clock())
    began = engine.clock()
    secrets = opened_secrets(engine.folder_key, due.account, webhook, began)
    try:
        body = under_way.make_body(engine.folder_key, occasion)
    except UNREADABLE as unreadable:
        assert isinstance(occasion, Entry)
        engine.damage.meet(occasion, unreadable)
        return replace(due, state="dropped", next_at=began)
    status, error = await _post(under_way.pool, due.url, secrets, due.id, body, began)
    now = engine.clock()
    taken = status is not None and 200 <= status < 300
    return replace(
        due,
        state="delivered" if taken else "pending",
        attempts=due.attempts + 1,
        next_at=now + _wait(due.attempts, LONGEST_WAIT),
        status=status,
        error=error,
        delivered_at=now if taken else None,
    )


async def _read_occasion(engine: Engine, due: Delivery) -> Entry | Alert | None:
    """The entry or alert that the delivery is about, as stored now; None when it is gone."""
    if due.kind == "alert.raised":
        return await engine.outbox.read(
            lambda c: outbox.alert(c, due.account, due.sequence, due.number)
        )
    return await engine.journal.entry(due.sequence)


async def _post(
    pool: httpcore.AsyncConnectionPool,
    url: str,
    secrets: Sequence[str],
    delivery_id: str,
    body: bytes,
    now: int,
) -> tuple[int | None, str | None]:
    """The status that the receiver answered, or what went wrong."""
    if not secrets:
        return None, _SEALED_ELSEWHERE
    headers = [
        ("host", urlsplit(url).netloc),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("user-agent", "tollkeeper"),
        ("toll-delivery", delivery_id),
        ("toll-signature", webhook_signature(secrets, now // SECOND, body)),
    ]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            async with pool.stream("POST", url, headers=headers, content=body) as answer:
                await _read_to_end(answer)
                return answer.status, None
    except TimeoutError:
        return None, f"no answer within {TIMEOUT_S:g} seconds"
    except Exception as error:  # whatever a receiver causes, it is shown, and the notice sent again
        return None, (str(error) or type(error).__name__)[:200]


async def _read_to_end(answer: httpcore.Response) -> None:
    """Read a short response to its end, so that the connection can be reused."""
    size = 0
    async for part in answer.aiter_stream():
        size += len(part)
        if size > MAX_ANSWER:
            return


async def _keep_trimmed(engine: Engine) -> None:
    """Keep each webhook's rows in the outbox within bounds; runs until cancelled."""
    while True:
        await asyncio.sleep(_TRIM_S)
        for account in list(engine.state.accounts.values()):
            for url in account.webhooks:
                # `deliver` logs it when the outbox can't be used.
                with suppress(JournalError):
                    if await engine.outbox.read(
                        partial(outbox.is_full, account=account.number, url=url)
                    ):
                        given_up = await engine.outbox.write(
                            partial(outbox.trim, account=account.number, url=url)
                        )
                        get_logger().warning(
                            "notices_given_up", account=account.number, count=given_up
                        )


def webhook_signature(secrets: Sequence[str], seconds: int, body: bytes) -> str:
    """`t=SECONDS,v1=HEX` with a `v1` for each secret: HMAC-SHA256 over `SECONDS.BODY`."""
    signed = b"%d." % seconds + body
    marks = [hmac.new(each.encode(), signed, hashlib.sha256).hexdigest() for each in secrets]
    return ",".join([f"t={seconds}", *(f"v1={mark}" for mark in marks)])


def _wait(failures: int, most: int) -> int:
    """The pause (µs) after this many former failures; up to a fifth of it is random."""
    longest = min(most, FIRST_WAIT << min(failures, 20))
    return longest - int(_chance.random() * longest / 5)
