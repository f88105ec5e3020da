"""Perform a verb on a journal: by the service that holds the journal, or here when none does.

A command writes the verb's name and arguments into the journal's database; the service polls for
them, performs the verb, and writes the answer into the same row.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from time import monotonic

import msgspec
from msgspec import Raw, Struct

from tollkeeper.engine.instants import now
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal import requests
from tollkeeper.engine.journal.contract import CommandRequest, JournalError, Locked, Unavailable
from tollkeeper.engine.journal.lock import COMMAND_PURPOSE, SERVICE_PURPOSE
from tollkeeper.engine.journal.source import (
    JournalSource,
    connect_to_journal,
    folder_of,
    holder_of_source,
    require_current,
    require_data,
)
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.open import open_engine
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect, Verb, find_verb, verb_name
from tollkeeper.engine.registry.errors import Refused
from tollkeeper.engine.runtime import Engine

QUEUE_PATIENCE_S = 30.0


class Envelope(Struct, frozen=True):
    """A verb on its way to the service: its name, and its arguments as JSON."""

    verb: str
    arguments: Raw


class Reply(Struct, frozen=True, omit_defaults=True):
    """The result of a verb: its effect, or else the errors that prevented it."""

    effect: Effect | None = None
    errors: tuple[Violation, ...] = ()


_encode = msgspec.json.Encoder().encode
_read_envelope = msgspec.json.Decoder(Envelope).decode
_read_reply = msgspec.json.Decoder(Reply).decode


def perform_in(source: JournalSource, verb: Verb, author: str, progress: Progress) -> Effect:
    """Perform a verb, here or by the running service. Raises `Refused`, `JournalError`."""
    if isinstance(verb, AccountVerb):
        # Its account must exist: a mistyped folder would become a new, empty one.
        require_data(source)
    deadline = monotonic() + QUEUE_PATIENCE_S
    while True:
        try:
            return asyncio.run(_perform_in_process(source, verb, author, progress))
        except Locked:
            if holder_of_source(source) == SERVICE_PURPOSE:
                break
            # Another command holds the journal for a moment.
            if monotonic() > deadline:
                raise
    require_current(source)
    try:
        with closing(connect_to_journal(source)) as connection:
            text = _encode(Envelope(verb_name(verb), Raw(_encode(verb)))).decode()
            request = requests.leave_request(connection, text, author, now())
            answer = requests.await_answer(
                connection, lambda: holder_of_source(source) is not None, request, progress
            )
    except sqlite3.Error as error:
        raise JournalError(
            f"the data folder `{folder_of(source)}` can't be written: {error}"
        ) from error
    reply = _read_reply(answer)
    if reply.effect is None:
        raise Refused(reply.errors)
    return reply.effect


async def _perform_in_process(
    source: JournalSource, verb: Verb, author: str, progress: Progress
) -> Effect:
    async with open_engine(source, COMMAND_PURPOSE) as engine:
        return await verb.perform(engine, author, progress)


async def answer_requests(engine: Engine) -> None:
    """Perform the requests of commands, side by side; runs until cancelled."""
    doing: dict[int, asyncio.Task[None]] = {}
    await _answer_abandoned(engine)
    try:
        while True:
            # When the journal can't be read, the next round finds them.
            with suppress(Unavailable):
                for request in await engine.journal.requests():
                    if request.id not in doing:
                        doing[request.id] = asyncio.create_task(_answer_request(engine, request))
            await asyncio.sleep(engine.journal.look_s)
            doing = {number: task for number, task in doing.items() if not task.done()}
    finally:
        for task in doing.values():
            task.cancel()


async def _answer_abandoned(engine: Engine) -> None:
    message = "the service ended before it answered: look whether it was done"
    text = _encode(_failure("command", "unavailable", message)).decode()
    while True:
        try:
            await engine.journal.answer_abandoned(text)
        except Unavailable:
            await asyncio.sleep(requests.LOOK_S)
        else:
            return


async def _answer_request(engine: Engine, request: CommandRequest) -> None:
    if not await _taken(engine, request):
        return
    shares: list[float] = []
    doing = asyncio.create_task(_reply(engine, request, shares.append))
    while not (await asyncio.wait([doing], timeout=requests.LOOK_S))[0]:
        if shares:
            with suppress(Unavailable):
                await engine.journal.note_progress(request.id, shares[-1])
    text = _encode(doing.result()).decode()
    while True:
        try:
            await engine.journal.note_answer(request.id, text)
        except Unavailable:
            # It is done: the command gets the answer once the disk can be written again.
            await asyncio.sleep(requests.LOOK_S)
        else:
            return


async def _taken(engine: Engine, request: CommandRequest) -> bool:
    """Take a request, once the journal can be written; whether its command still waits."""
    while True:
        try:
            return await engine.journal.take_request(request.id)
        except Unavailable:
            # It may be taken all the same: then no look finds it again.
            await asyncio.sleep(requests.LOOK_S)


async def _reply(engine: Engine, request: CommandRequest, progress: Progress) -> Reply:
    """Perform a request; every error becomes a reply, so that the command never waits in vain."""
    try:
        verb = _read_verb(request.action)
        return Reply(effect=await verb.perform(engine, request.author, progress))
    except Refused as refused:
        return Reply(errors=tuple(refused.violations))
    except JournalError as error:
        return _failure("data", "unavailable", str(error))
    except LookupError as error:
        return _failure("command", "not_found", f"the running service has no command {error}")
    except Exception as fault:
        get_logger().exception("request_failed", request=request.id)
        message = f"the service failed to do this: {type(fault).__name__}"
        return _failure("command", "internal_error", message)


def _read_verb(text: str) -> Verb:
    envelope = _read_envelope(text)
    return msgspec.json.decode(envelope.arguments, type=find_verb(envelope.verb))


def _failure(field: str, type_: str, message: str) -> Reply:
    return Reply(errors=(Violation(field, type_, message),))
