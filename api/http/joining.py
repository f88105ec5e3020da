"""A joining node copies the owner's windows and first-seen times: to build them from the whole
journal takes twenty times as long.

Both contain personal data. The owner sends them only to a peer that proves that it has the nodes'
shared key (`folder.key`); between machines, nodes use TLS.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR, socket
from ssl import SSLContext
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from litestar.types import HTTPScope, Send
from structlog import get_logger

from tollkeeper.api.http.errors import unauthorized, unavailable, unknown_path
from tollkeeper.api.http.node_connection import CONNECT_S, SHARD
from tollkeeper.engine.amendments_file import write_seen_amendment
from tollkeeper.engine.folder_key import FolderKey, NameUse, Spot, open_folder_key
from tollkeeper.engine.journal.postgres.journal import PostgresJournal
from tollkeeper.engine.journal.reads import last_amendment
from tollkeeper.engine.journal.source import Database, key_folder_of
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.first_seen_file import AGES_FILE, remove_seen_times
from tollkeeper.engine.velocity.snapshot import FILE
from tollkeeper.engine.window_snapshot import write_recent

KEPT_FILES: Final = "/node/kept/"
"""The path under which other nodes find the files by name."""
_PROOF = b"toll-proof"
_AMENDED = b"toll-amended"
"""A response header: the last amendment of the journal that the file takes into account."""
_PART = 1 << 20
"""The most bytes that are read and sent at once."""
_BEGINNING_S = 120.0
"""How long the owner may take to write the requested file."""
_PART_S = 10.0
"""How long the owner may then pause between parts."""

log = get_logger()


async def give_kept(engine: Engine, scope: HTTPScope, send: Send) -> None:
    """Answer a node that requests one of the owner's files. Raises `Problem`."""
    shown = next((value for name, value in scope["headers"] if name == _PROOF), b"")
    if not compare_digest(shown, _proof(engine.folder_key, engine.journal.shard.number)):
        raise unauthorized()
    amended = await engine.journal.query(last_amendment)
    if engine.rewriting:
        raise unavailable("a person's data is being erased")
    match scope["path"].removeprefix(KEPT_FILES):
        case name if name == FILE:
            await write_recent(engine)
            opened = await asyncio.to_thread(_open, engine.folder / FILE)
        case name if name == AGES_FILE:
            opened = await asyncio.to_thread(_open_copy, engine.folder / AGES_FILE)
        case _:
            raise unknown_path()
    if opened is None:
        raise unavailable("nothing is kept yet")
    with opened:
        size = os.fstat(opened.fileno()).st_size
        headers = [(b"content-length", b"%d" % size), (_AMENDED, b"%d" % amended)]
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
        left = size
        while left:
            part = await asyncio.to_thread(opened.read, min(left, _PART))
            left -= len(part)
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def take_kept(source: Database, journal: PostgresJournal, tls: SSLContext | None) -> None:
    """Copy the owner's files to the folder of a node that has no snapshot. If that fails, the windows
    are filled from the journal. Raises `Unavailable`.
    """
    folder, shard = source.folder, journal.shard.number
    ages, snapshot = (folder / f"{name}.arriving" for name in (AGES_FILE, FILE))
    # Left by a process that was killed.
    for path in (ages, snapshot, _copy_of(folder / AGES_FILE)):
        path.unlink(missing_ok=True)
    standing = await journal.standing()
    if (folder / FILE).exists() or not (standing.is_held and standing.address):
        return
    sockets: list[socket] = []
    try:
        key = open_folder_key(key_folder_of(source))
        take = partial(_take, sockets, standing.address, tls, _proof(key, shard), shard)
        # At once: the owner may have to write the snapshot first.
        taking = (
            asyncio.to_thread(take, name, path, is_checked=is_checked)
            for name, path, is_checked in ((AGES_FILE, ages, False), (FILE, snapshot, True))
        )
        amendments = []
        for amendment in await asyncio.gather(*taking, return_exceptions=True):
            if isinstance(amendment, BaseException):
                raise amendment
            amendments.append(amendment)
        remove_seen_times(folder / AGES_FILE)
        ages.replace(folder / AGES_FILE)
        snapshot.replace(folder / FILE)
        write_seen_amendment(folder, journal.identity(), min(amendments))
        log.info("windows_taken", owner=standing.owner)
    except (OSError, HTTPException) as error:
        log.info("windows_not_taken", owner=standing.owner, reason=str(error) or "it is silent")
    finally:
        # Without this, a node that is to stop would wait for the threads that wait for the owner.
        for each in sockets:
            with suppress(OSError):
                each.shutdown(SHUT_RDWR)
        for path in (ages, snapshot):
            path.unlink(missing_ok=True)


def _proof(key: FolderKey, shard: int) -> bytes:
    return key.name_of(NameUse.NODE, 0, Spot(shard)).encode()


def _take(
    sockets: list[socket],
    address: str,
    tls: SSLContext | None,
    proof: bytes,
    shard: int,
    name: str,
    path: Path,
    *,
    is_checked: bool,
) -> int:
    """Write one file; return the last amendment that it takes into account. One that `is_checked` when
    it is read need not be on disk. The connection's socket is added to `sockets`. Raises `OSError`,
    `HTTPException`.
    """
    with closing(_connect(address, tls)) as connection:
        # The connection lets go of its socket if the owner is to end it after the answer.
        way = connection.sock
        sockets.append(way)
        way.settimeout(_BEGINNING_S)
        headers = {SHARD.decode(): str(shard), _PROOF.decode(): proof.decode()}
        connection.request("GET", KEPT_FILES + name, headers=headers)
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise ConnectionError(f"the owner answers {answer.status} for `{name}`")
        way.settimeout(_PART_S)
        left, amended = (
            _number(answer, each, name) for each in ("content-length", _AMENDED.decode())
        )
        part = memoryview(bytearray(_PART))
        with path.open("wb") as file:
            path.chmod(0o600)
            while left:
                size = answer.readinto(part[:left])
                if not size:
                    raise ConnectionError(f"the owner ended the connection within `{name}`")
                file.write(part[:size])
                left -= size
            if not is_checked:
                file.flush()
                os.fsync(file.fileno())
        return amended


def _number(answer: HTTPResponse, header: str, name: str) -> int:
    """The number in a header of the answer for the file `name`. Raises `OSError` without one."""
    value = answer.headers.get(header, "")
    if not (value.isascii() and value.isdecimal()):
        raise ConnectionError(f"the owner's answer for `{name}` has no number as `{header}`")
    return int(value)


def _connect(address: str, tls: SSLContext | None) -> HTTPConnection:
    """Connect to the node at an `http` or `https` address. Raises `OSError`."""
    node = urlsplit(address)
    host, port = node.hostname or "", node.port
    connection = (
        HTTPSConnection(host, port, timeout=CONNECT_S, context=tls)
        if node.scheme == "https"
        else HTTPConnection(host, port, timeout=CONNECT_S)
    )
    try:
        connection.connect()
    except UnicodeError as error:
        raise OSError(f"`{host}` is no name of a host") from error
    return connection


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _open_copy(path: Path) -> BinaryIO:
    """Open a consistent copy of a database; the copy is deleted when it is closed."""
    copied = _copy_of(path)
    copied.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(path)) as found, closing(sqlite3.connect(copied)) as made:
            copied.chmod(0o600)
            # The copy is gone before a power cut could tear it.
            made.execute("PRAGMA synchronous = OFF")
            found.backup(made)
        return copied.open("rb")
    finally:
        copied.unlink(missing_ok=True)


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.copy")
