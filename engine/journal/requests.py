"""What commands ask of the service that holds their data folder, and what it answers.

A command leaves a request in the database; the service looks for open ones, takes them, tells how
far it is, and answers. Should the service end before that, the command takes its request back.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from tollkeeper.engine.journal.contract import CommandRequest, Unanswered
from tollkeeper.engine.journal.lock import holder

LOOK_S = 0.05
PROBE = 20
"""At every so many looks a command tries whether the folder can be written."""


def leave_request(connection: sqlite3.Connection, action: str, author: str, now: int) -> int:
    """Leaves a request, `now` in microseconds; its id."""
    cursor = connection.execute(
        "INSERT INTO requests (action, author, left_at) VALUES (?, ?, ?)", (action, author, now)
    )
    return int(cursor.lastrowid or 0)


def open_requests(connection: sqlite3.Connection) -> list[CommandRequest]:
    """The requests without an answer, oldest first."""
    rows = connection.execute(
        "SELECT id, action, author FROM requests WHERE NOT done AND action != '' ORDER BY id"
    )
    return [CommandRequest(*row) for row in rows]


def take_request(connection: sqlite3.Connection, request: int) -> None:
    """Forgets what is asked by a request that is about to be done: it may name a person."""
    connection.execute("UPDATE requests SET action = '' WHERE id = ?", (request,))


def note_progress(connection: sqlite3.Connection, request: int, share: float) -> None:
    """Notes how much of a request is done, from 0 to 1."""
    connection.execute("UPDATE requests SET progress = ? WHERE id = ?", (share, request))


def answer_request(connection: sqlite3.Connection, request: int, result: str) -> None:
    """Answers a request with JSON text."""
    connection.execute(
        "UPDATE requests SET answer = ?, progress = 1.0, done = 1 WHERE id = ?", (result, request)
    )


def await_answer(
    connection: sqlite3.Connection,
    folder: Path,
    request: int,
    on_progress: Callable[[float], None],
) -> str:
    """Waits for a request's answer, JSON text, and tells of progress on the way.

    An answer is read once: it may be a key. Raises `Unanswered` when the folder's service has
    ended; the request is then taken back, so that the next service won't do it unasked. Raises
    `sqlite3.Error` when the folder can't be written: then the service can't answer either.
    """
    looks = 0
    while True:
        looks += 1
        if looks % PROBE == 0:
            connection.execute("UPDATE requests SET left_at = left_at WHERE id = ?", (request,))
        held = holder(folder) is not None
        result = _look(connection, request, on_progress)
        if result is not None:
            connection.execute("DELETE FROM requests WHERE id = ?", (request,))
            return result
        if not held:
            connection.execute("DELETE FROM requests WHERE id = ? AND NOT done", (request,))
            raise Unanswered("the service ended before it answered: look whether it was done")
        time.sleep(LOOK_S)


def purge_requests(connection: sqlite3.Connection, before: int) -> int:
    """Removes the requests left before a time; there are few, and none is left."""
    return connection.execute("DELETE FROM requests WHERE left_at < ?", (before,)).rowcount


def _look(
    connection: sqlite3.Connection, request: int, on_progress: Callable[[float], None]
) -> str | None:
    row = connection.execute(
        "SELECT progress, answer, done FROM requests WHERE id = ?", (request,)
    ).fetchone()
    if row is None:
        raise Unanswered("the request is gone: it was left more than a day ago")
    share, result, done = row
    on_progress(share)
    return str(result) if done else None
