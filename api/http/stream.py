"""Decisions as they are made, as server-sent events.

Each viewer queries the index for new decisions twice a second. So nothing is queued for slow
viewers, and the event loop that decides payments does nothing for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import msgspec
from litestar.response import Stream

from tollkeeper.api.http.authentication import may_still
from tollkeeper.api.http.bodies import header
from tollkeeper.api.http.filtering import with_filter
from tollkeeper.api.http.limits import MOST_STREAMS
from tollkeeper.api.http.operation import Answer, operation
from tollkeeper.api.http.parameters import query_parameter, whole
from tollkeeper.api.http.queries import name_place, read_count, read_place
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.search import found_view
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import FindNew, NewPayments

_EVENT_STREAM: str = "text/event-stream"
SENT_AT_A_TIME = 100
"""The most payments sent to a viewer at once; of more, the newest, with the number skipped."""
_PAUSE_S = 0.5
STREAM_SECONDS = 300
_SILENCE_S = 15.0
_RETRY_MS = 2000

_encode = msgspec.json.Encoder().encode


@operation(
    "GET",
    "/v1/decisions/stream",
    "stream_decisions",
    tag=PAYMENTS,
    summary="Follow decisions as they are made",
    doc=f"""Server-sent events. Each event `payment` holds one payment that the filter means, in the form of the search; its id continues the stream when it is sent as `Last-Event-ID`, as browsers do by themselves, and so does the `place` of a search. At most `most` payments come at a time, {SENT_AT_A_TIME} when it is left out, {1 / _PAUSE_S:g} times a second: of more, the newest, after an event `gap` with `{{"skipped": n}}`. An account follows at most {MOST_STREAMS} at once, more get 429.
""",
    scope="payments:read",
    of_merchants=True,
    answers={200: Answer("The stream.", str, media_type=_EVENT_STREAM)},
    refusals=(422, 503),
)
@with_filter
async def stream_decisions(
    request: Request,
    wanted: Filter,
    most: Annotated[
        str | None,
        query_parameter("The most payments to send at once.", whole(1, SENT_AT_A_TIME), 20),
    ] = None,
    seconds: Annotated[
        str | None,
        query_parameter(
            (
                f"The stream's length in seconds, {STREAM_SECONDS} by default. Then the "
                "client reconnects."
            ),
            whole(1, STREAM_SECONDS),
            60,
        ),
    ] = None,
) -> Stream:
    resumed = header(request.scope, b"last-event-id")
    last_id = None if resumed is None else resumed.decode("latin-1")
    after = read_place(request, "last-event-id", last_id)
    lasting = min(read_count("seconds", seconds) or STREAM_SECONDS, STREAM_SECONDS)
    at_a_time = min(read_count("most", most) or SENT_AT_A_TIME, SENT_AT_A_TIME)
    account = request.key.account
    # Query once before the answer begins, so that an invalid filter gets an error status.
    new, _ = await request.search.ask(account, FindNew(wanted, after, at_a_time), NewPayments)
    begin = new.last if after is None else after
    loop, limiter = asyncio.get_running_loop(), request.service.limiter
    end = limiter.open_stream(account, lasting, loop.time())
    events = _events(request, wanted, at_a_time, new, begin, end)
    events = _closing(events, lambda: limiter.close_stream(account, end))
    return Stream(events, media_type=_EVENT_STREAM, headers={"cache-control": "no-store"})


ROUTES = (stream_decisions,)


async def _closing(events: AsyncIterator[bytes], close: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the events; call `close` at the end, or when the client disconnects."""
    try:
        async for event in events:
            yield event
    finally:
        close()


async def _events(
    request: Request,
    wanted: Filter,
    at_a_time: int,
    new: NewPayments,
    begin: int,
    end: float,
) -> AsyncIterator[bytes]:
    search, key = request.search, request.key
    loop = asyncio.get_running_loop()
    # A client that disconnects here resumes before what it hasn't received.
    yield f"retry: {_RETRY_MS}\nid: {name_place(request, begin)}\n\n".encode()
    quiet_since = loop.time()
    while True:
        if events := await _encode_events(request, new):
            yield events
            quiet_since = loop.time()
        if loop.time() - quiet_since > _SILENCE_S:
            yield b": nothing new\n\n"
            quiet_since = loop.time()
        if search.stopping or loop.time() > end:
            return
        await asyncio.sleep(_PAUSE_S)
        if not may_still(request, "payments:read") or request.key.merchants != key.merchants:
            return
        try:
            question = FindNew(wanted, new.last, at_a_time)
            new, _ = await search.ask(key.account, question, NewPayments)
        except JournalError:
            # End the stream: the client reconnects, and then gets the error.
            return


async def _encode_events(request: Request, new: NewPayments) -> bytes:
    """Return the events of new payments in one piece: sending each alone takes more of the event loop's
    time than making it.
    """
    events = []
    if new.skipped:
        events.append(b"event: gap\ndata: " + _encode({"skipped": new.skipped}) + b"\n\n")
    for payment in new.payments:
        data = _encode(found_view(payment))
        place = name_place(request, payment.sequence)
        events.append(f"id: {place}\nevent: payment\ndata: ".encode() + data + b"\n\n")
        # Payments that wait are decided between two events.
        await asyncio.sleep(0)
    return b"".join(events)
