"""Alerts leave the outbox: signed, one at a time to each address, again and again until taken.

An alert is delivered at least once; its id tells a receiver what it has seen. An answer of 2xx
takes it. Anything else, a redirect included, is tried again: after a second, then twice as long
each time, up to an hour, for as long as the webhook is there and the alert is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from functools import partial
from secrets import SystemRandom
from urllib.parse import urlsplit

import httpcore
import msgspec
from structlog import get_logger

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.keep import remember_progress
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.outbox import Alert, Delivery, show_alert
from tollkeeper.engine.monitors.webhook_reach import connections
from tollkeeper.engine.registry.state import Webhook
from tollkeeper.engine.runtime import Engine

SECOND = 1_000_000
"""In microseconds."""

FIRST_WAIT = SECOND
LONGEST_WAIT = 3600 * SECOND
TIMEOUT_S = 10.0
_LOOK_S = 0.5
"""How long something due may wait for the next look at the outbox."""
_AT_ONCE = 50
"""How many addresses are written to at the same time."""
MAX_ANSWER = 64 * 1024
"""How much of a receiver's answer is read; what it says is of no interest."""

SAMPLE_ID = "sample"
"""The id of every delivery that nothing raised."""

encode_alert = msgspec.json.Encoder().encode
_chance = SystemRandom()


async def deliver(engine: Engine, timeout_s: float = TIMEOUT_S) -> None:
    """Send what is due, until cancelled; nothing that goes wrong with a receiver ends it."""
    sending: dict[tuple[int, str], asyncio.Task[None]] = {}
    async with connections(engine.reach) as pool:
        try:
            while True:
                try:
                    await _look(engine, pool, sending, timeout_s)
                except JournalError as error:
                    get_logger().error("deliveries_held_up", reason=str(error))
                    await asyncio.sleep(_LOOK_S)
        finally:
            for task in sending.values():
                task.cancel()
            if sending:
                await asyncio.wait(sending.values())


async def send_sample(
    engine: Engine, account: int, webhook: Webhook, timeout_s: float = TIMEOUT_S
) -> tuple[int | None, str | None]:
    """The status that a receiver answers to an alert that nothing raised, or what went wrong.

    It is sent once, at once, and kept nowhere.
    """
    now = engine.clock()
    nobody = Transition("sample", "sample", (), now, True, "Sent to try the webhook out")
    alert = Alert(account, 0, 0, nobody)
    async with connections(engine.reach) as pool:
        return await _post(pool, webhook, SAMPLE_ID, alert, now, timeout_s)


async def _look(
    engine: Engine,
    pool: httpcore.AsyncConnectionPool,
    sending: dict[tuple[int, str], asyncio.Task[None]],
    timeout_s: float,
) -> None:
    """Start what is due and wait for something new, at most `_LOOK_S`."""
    engine.watch.raised.clear()
    due = engine.outbox.read(lambda c: outbox.due_addresses(c, engine.clock()))
    for account, url in due:
        if _waits(engine, account):
            continue
        if (account, url) not in sending and len(sending) < _AT_ONCE:
            task = asyncio.create_task(_send_due(engine, pool, account, url, timeout_s))
            sending[account, url] = task
            task.add_done_callback(lambda _, of=(account, url): sending.pop(of))  # type: ignore[misc]
    try:
        async with asyncio.timeout(_LOOK_S):
            await engine.watch.raised.wait()
    except TimeoutError:
        await remember_progress(engine)


def _waits(engine: Engine, account: int) -> bool:
    """Whether what is due stays until the account is resumed."""
    known = engine.state.accounts.get(account)
    return known is not None and known.suspended_at is not None


async def _send_due(
    engine: Engine, pool: httpcore.AsyncConnectionPool, account: int, url: str, timeout_s: float
) -> None:
    """All that is due to one address, one after the other."""
    try:
        while not _waits(engine, account):
            due = engine.outbox.read(
                partial(outbox.next_due, account=account, url=url, now=engine.clock())
            )
            if due is None:
                return
            changed = await _send(engine, pool, due, timeout_s)
            await engine.outbox.write(partial(outbox.set_delivery, changed=changed))
            get_logger().info(
                "delivery",
                account=account,
                delivery=due.id,
                state=changed.state,
                status=changed.status,
                error=changed.error,
            )
    except JournalError as error:
        get_logger().error("deliveries_held_up", account=account, reason=str(error))
        await asyncio.sleep(_LOOK_S)


async def _send(
    engine: Engine, pool: httpcore.AsyncConnectionPool, due: Delivery, timeout_s: float
) -> Delivery:
    """What became of one attempt."""
    account = engine.state.accounts.get(due.account)
    webhook = None if account is None else account.webhooks.get(due.url)
    alert = engine.outbox.read(lambda c: outbox.alert(c, due.account, due.sequence, due.number))
    if webhook is None or alert is None:
        return msgspec.structs.replace(due, state="dropped")
    status, error = await _post(pool, webhook, due.id, alert, engine.clock(), timeout_s)
    now = engine.clock()
    taken = status is not None and 200 <= status < 300
    return msgspec.structs.replace(
        due,
        state="delivered" if taken else "pending",
        attempts=due.attempts + 1,
        next_at=now + _wait(due.attempts),
        status=status,
        error=error,
        delivered_at=now if taken else None,
    )


async def _post(
    pool: httpcore.AsyncConnectionPool,
    webhook: Webhook,
    delivery_id: str,
    alert: Alert,
    now: int,
    timeout_s: float,
) -> tuple[int | None, str | None]:
    """The status that the receiver answered, or what went wrong."""
    body = encode_alert({"alert": show_alert(alert)})
    seconds = now // SECOND
    headers = [
        ("host", urlsplit(webhook.url).netloc),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("user-agent", "tollkeeper"),
        ("toll-delivery", delivery_id),
        ("toll-signature", webhook_signature(webhook.secrets, seconds, body)),
    ]
    try:
        async with asyncio.timeout(timeout_s):
            async with pool.stream("POST", webhook.url, headers=headers, content=body) as answer:
                await _read_over(answer)
                return answer.status, None
    except TimeoutError:
        return None, f"no answer within {timeout_s:g} seconds"
    except Exception as error:  # whatever a receiver brings about, it is shown and tried again
        return None, (str(error) or type(error).__name__)[:200]


async def _read_over(answer: httpcore.Response) -> None:
    """Reads a short answer, so that its connection can be used again."""
    size = 0
    async for part in answer.aiter_stream():
        size += len(part)
        if size > MAX_ANSWER:
            return


def webhook_signature(secrets: Sequence[str], seconds: int, body: bytes) -> str:
    """`t=SECONDS,v1=HEX` with a `v1` for each secret: HMAC-SHA256 over `SECONDS.BODY`."""
    signed = b"%d." % seconds + body
    marks = [hmac.new(each.encode(), signed, hashlib.sha256).hexdigest() for each in secrets]
    return ",".join([f"t={seconds}", *(f"v1={mark}" for mark in marks)])


def _wait(attempts: int) -> int:
    """How long (µs) after the failure of attempt `attempts` + 1; a fifth of it is chance."""
    longest = min(LONGEST_WAIT, FIRST_WAIT << min(attempts, 20))
    return longest - int(_chance.random() * longest / 5)
