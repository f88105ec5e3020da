"""What commands ask for: done by the running service, or by the command itself when none runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from structlog import get_logger

from tollkeeper.engine.events.versions import AT_ONCE, Planned
from tollkeeper.engine.filling import fill
from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal import requests, schema
from tollkeeper.engine.journal.contract import JournalError, Locked, Request
from tollkeeper.engine.journal.lock import COMMAND, SERVICE, holder
from tollkeeper.engine.open import now, open_engine
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.publish import change_lists as list_changes
from tollkeeper.engine.publish.activate import Rejected, publish, store, unpublish, violations
from tollkeeper.engine.publish.make_change import make_change
from tollkeeper.engine.publish.set_settings import set_settings
from tollkeeper.engine.publish.shipped import take_up_shipped
from tollkeeper.engine.publish.trials import clear_rollout, clear_shadow, set_rollout, set_shadow
from tollkeeper.engine.registry.accounts import create_account, find_account
from tollkeeper.engine.registry.changes import Kind, PersonErased, Scope
from tollkeeper.engine.registry.errors import Refused
from tollkeeper.engine.registry.keys import create_key, revoke_key
from tollkeeper.engine.registry.lists import read_spec
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.runtime import Engine

Progress = Callable[[float], None]

PATIENCE_S = 30.0


class CreateAccount(Struct, frozen=True, tag=True):
    name: str


class ChangeSettings(Struct, frozen=True, tag=True):
    """`settings` in the form of `GET /account`."""

    account: str
    settings: dict[str, Any]


class CreateKey(Struct, frozen=True, tag=True):
    account: str
    scopes: tuple[Scope, ...]


class RevokeKey(Struct, frozen=True, tag=True):
    account: str
    id: str


class Store(Struct, frozen=True, tag=True):
    """Store `text` as a version; publish it too when `activate`.

    `expected` is the newest version that the author knew of, None for any.
    """

    account: str
    kind: Kind
    name: str
    text: str
    activate: bool
    expected: int | None = None
    planned: Planned = AT_ONCE


class Activate(Struct, frozen=True, tag=True):
    account: str
    kind: Kind
    name: str
    version: int


class Deactivate(Struct, frozen=True, tag=True):
    account: str
    kind: Kind
    name: str


class SetShadow(Struct, frozen=True, tag=True):
    account: str
    kind: Decider
    name: str
    version: int


class ClearShadow(Struct, frozen=True, tag=True):
    account: str
    kind: Decider
    name: str


class SetRollout(Struct, frozen=True, tag=True):
    account: str
    kind: Decider
    name: str
    version: int
    percent: int
    by: str


class ClearRollout(Struct, frozen=True, tag=True):
    account: str
    kind: Decider
    name: str


class MakeList(Struct, frozen=True, tag=True):
    """`spec` in the form of `PUT /lists/{name}`."""

    account: str
    name: str
    spec: dict[str, Any]


class PutEntries(Struct, frozen=True, tag=True):
    account: str
    name: str
    entries: list[Any]


class RemoveEntries(Struct, frozen=True, tag=True):
    account: str
    name: str
    values: list[Any]


class ReplaceEntries(Struct, frozen=True, tag=True):
    """Swap a staged content in for all that the list holds."""

    account: str
    name: str
    content: int


class EraseUser(Struct, frozen=True, tag=True):
    account: str
    user: str


OnFiles: TypeAlias = Store | Activate | Deactivate
OnTrial: TypeAlias = SetShadow | ClearShadow | SetRollout | ClearRollout
OnLists: TypeAlias = MakeList | PutEntries | RemoveEntries | ReplaceEntries
OnAccounts: TypeAlias = ChangeSettings | CreateKey | RevokeKey | EraseUser
Errand: TypeAlias = CreateAccount | OnAccounts | OnFiles | OnTrial | OnLists


class Done(Struct, frozen=True, tag=True, omit_defaults=True):
    """`key` is shown this once; `version` the one stored or active now; `count` what was changed."""

    key: str | None = None
    version: int | None = None
    count: int | None = None
    erased: PersonErased | None = None


class NotDone(Struct, frozen=True, tag=True):
    errors: tuple[Violation, ...]


Answer: TypeAlias = Done | NotDone

_encode = msgspec.json.Encoder().encode
_errand = msgspec.json.Decoder(Errand).decode
_answer = msgspec.json.Decoder(Answer).decode


def run_errand(folder: Path, errand: Errand, author: str, progress: Progress) -> Answer:
    """Have it done on the data folder, by whoever holds it. Raises `JournalError`."""
    deadline = monotonic() + PATIENCE_S
    while True:
        try:
            return asyncio.run(_run_alone(folder, errand, author, progress))
        except Locked:
            if holder(folder) == SERVICE:
                break
            # Another command has the folder, for a moment.
            if monotonic() > deadline:
                raise
    schema.require_current(folder)
    with closing(schema.connect(folder)) as connection:
        text = _encode(errand).decode()
        request = requests.leave_request(connection, text, author, now())
        answer: Answer = _answer(requests.await_answer(connection, folder, request, progress))
        return answer


async def _run_alone(folder: Path, errand: Errand, author: str, progress: Progress) -> Answer:
    async with open_engine(folder, COMMAND) as engine:
        return await do_errand(engine, errand, author, progress)


async def do_errand(engine: Engine, errand: Errand, author: str, progress: Progress) -> Answer:
    """Never raises for what is wrong with the errand itself."""
    try:
        return await _do(engine, errand, author, progress)
    except Rejected as rejected:
        assert isinstance(errand, Store)
        return NotDone(tuple(violations(errand.name, rejected)))
    except Refused as refused:
        return NotDone(tuple(refused.violations))
    except JournalError as error:
        return NotDone((Violation("data", "unavailable", str(error)),))


async def _do(engine: Engine, errand: Errand, author: str, progress: Progress) -> Done:
    if isinstance(errand, CreateAccount):
        async with engine.changing:
            number, created = create_account(engine.state, errand.name)
            await make_change(engine, number, author, created)
            await take_up_shipped(engine, number)
            if engine.ready.is_set():
                await fill(engine, number, engine.force[number].plans(), progress)
        return Done()
    number = find_account(engine.state, errand.account).number
    match errand:
        case ChangeSettings() | CreateKey() | RevokeKey() | EraseUser():
            return await _on_account(engine, number, errand, author)
        case Store() | Activate() | Deactivate():
            return await _on_file(engine, number, errand, author, progress)
        case SetShadow() | ClearShadow() | SetRollout() | ClearRollout():
            return await _on_trial(engine, number, errand, author, progress)
        case MakeList() | PutEntries() | RemoveEntries() | ReplaceEntries():
            return await _on_list(engine, number, errand, author)


async def _on_account(engine: Engine, number: int, errand: OnAccounts, author: str) -> Done:
    match errand:
        case ChangeSettings():
            changed = await set_settings(engine, number, author, errand.settings)
            return Done(count=len(changed))
        case CreateKey():
            async with engine.changing:
                key, created = create_key(engine.state.accounts[number], errand.scopes)
                await make_change(engine, number, author, created)
            return Done(key=key)
        case RevokeKey():
            async with engine.changing:
                revoked = revoke_key(engine.state.accounts[number], errand.id)
                await make_change(engine, number, author, revoked)
            return Done()
        case EraseUser():
            return Done(erased=await erase_user(engine, number, author, errand.user))


async def _on_file(
    engine: Engine, number: int, errand: OnFiles, author: str, progress: Progress
) -> Done:
    kind, name = errand.kind, errand.name
    match errand:
        case Store():
            content = errand.text.encode()
            stored = await store(engine, number, author, kind, name, content, errand.expected)
            version = stored.version.number
            if errand.activate:
                await publish(engine, number, author, kind, name, version, progress, errand.planned)
            return Done(version=version)
        case Activate():
            await publish(engine, number, author, kind, name, errand.version, progress)
            return Done(version=errand.version)
        case Deactivate():
            await unpublish(engine, number, author, kind, name)
            return Done()


async def _on_trial(
    engine: Engine, number: int, errand: OnTrial, author: str, progress: Progress
) -> Done:
    kind, name = errand.kind, errand.name
    match errand:
        case SetShadow():
            await set_shadow(engine, number, author, kind, name, errand.version, progress)
            return Done(version=errand.version)
        case ClearShadow():
            await clear_shadow(engine, number, author, kind, name)
        case SetRollout(version=version, percent=percent, by=by):
            await set_rollout(engine, number, author, kind, name, version, percent, by, progress)
            return Done(version=version)
        case ClearRollout():
            await clear_rollout(engine, number, author, kind, name)
    return Done()


async def _on_list(engine: Engine, number: int, errand: OnLists, author: str) -> Done:
    name = errand.name
    match errand:
        case MakeList():
            made = await list_changes.make(engine, number, author, name, read_spec(errand.spec))
            return Done(count=int(made))
        case PutEntries():
            count = await list_changes.put(engine, number, author, name, errand.entries)
        case RemoveEntries():
            count = await list_changes.remove(engine, number, author, name, errand.values)
        case ReplaceEntries():
            count = await list_changes.replace(engine, number, author, name, errand.content)
    return Done(count=count)


async def answer_requests(engine: Engine) -> None:
    """Do what commands leave for the running service, until cancelled.

    One that takes long keeps no other waiting.
    """
    doing: dict[int, asyncio.Task[None]] = {}
    try:
        while True:
            for request in await engine.journal.requests():
                if request.id not in doing:
                    doing[request.id] = asyncio.create_task(_answer_request(engine, request))
            await asyncio.sleep(requests.LOOK_S)
            doing = {number: task for number, task in doing.items() if not task.done()}
    finally:
        for task in doing.values():
            task.cancel()


async def _answer_request(engine: Engine, request: Request) -> None:
    await engine.journal.take_request(request.id)
    shares: list[float] = []
    doing = asyncio.create_task(_do_request(engine, request, shares.append))
    while not (await asyncio.wait([doing], timeout=requests.LOOK_S))[0]:
        if shares:
            await engine.journal.note_progress(request.id, shares[-1])
    text = _encode(doing.result()).decode()
    await engine.journal.note_answer(request.id, text)


async def _do_request(engine: Engine, request: Request, progress: Progress) -> Answer:
    """Whatever happens, the command that waits hears of it."""
    try:
        return await do_errand(engine, _errand(request.action), request.author, progress)
    except Exception as fault:
        get_logger().exception("errand_failed", request=request.id)
        message = f"the service failed to do this: {type(fault).__name__}"
        return NotDone((Violation("command", "internal_error", message),))
