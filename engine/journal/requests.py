"""Requests from commands to the service that holds the data folder, and its answers.

A command writes a request into the database; the service polls for requests, begins them, reports
progress, and answers. If the service ends before it answers, the command withdraws its request.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import CommandRequest, Unanswered

LOOK_S = 0.05
DATABASE_LOOK_S = 0.25
"""How often an owner looks for requests in a database, where each look is a query over the network."""
PROBE = 20
"""A command probes at every so many polls whether the folder can be written."""


def leave_request(connection: SqlConnection, action: str, author: str, now: int) -> int:
    """Write a request, `now` in µs; returns its id."""
    ((request,),) = connection.execute(
        "INSERT INTO requests (action, author, left_at) VALUES (?, ?, ?) RETURNING id",
        (action, author, now),
    ).fetchall()
    return int(request)


def open_requests(connection: SqlConnection) -> list[CommandRequest]:
    """The requests without an answer, oldest first."""
    rows = connection.execute(
        "SELECT id, action, author FROM requests WHERE done = 0 AND action != '' ORDER BY id"
    )
    return [CommandRequest(*row) for row in rows]


def take_request(connection: SqlConnection, request: int) -> bool:
    """Delete the contents of a request that is about to be done: they may be personal data. Whether
    its command still waits."""
    done = connection.execute("UPDATE requests SET action = '' WHERE id = ?", (request,))
    return bool(done.rowcount)


def note_progress(connection: SqlConnection, request: int, share: float) -> None:
    """Write the share of a request that is done, from 0 to 1."""
    connection.execute("UPDATE requests SET progress = ? WHERE id = ?", (share, request))


def answer_request(connection: SqlConnection, request: int, result: str) -> None:
    """Answer a request with JSON text."""
    connection.execute(
        "UPDATE requests SET answer = ?, progress = 1.0, done = 1 WHERE id = ?", (result, request)
    )


def answer_abandoned(connection: SqlConnection, result: str) -> None:
    """Answer, with JSON text, the requests that a former owner of the journal began."""
    connection.execute(
        "UPDATE requests SET answer = ?, done = 1 WHERE done = 0 AND action = ''", (result,)
    )


def await_answer(
    connection: SqlConnection,
    is_served: Callable[[], bool],
    request: int,
    on_progress: Callable[[float], None],
) -> str:
    """Wait for a request's answer, JSON text, and report its progress.

    `is_served` says whether a service is running. An answer is deleted when read: it may be a key.
    Raises `Unanswered` when the service has ended; the request is then withdrawn, so that the next
    service does not do it. Raises the database's error when the database can't be written: then the
    service can't answer either.
    """
    looks = 0
    while True:
        looks += 1
        if looks % PROBE == 0:
            # SQLite does not write a row that stays the same, so the probe changes a time.
            connection.execute("UPDATE requests SET left_at = left_at + 1 WHERE id = ?", (request,))
        was_served = is_served()
        result = _look(connection, request, on_progress)
        if result is not None:
            connection.execute("DELETE FROM requests WHERE id = ?", (request,))
            return result
        if not was_served:
            connection.execute("DELETE FROM requests WHERE id = ? AND done = 0", (request,))
            raise Unanswered("the service ended before it answered: look whether it was done")
        time.sleep(LOOK_S)


def purge_requests(connection: SqlConnection, before: int) -> int:
    """Remove the requests made before a time: all at once, as there are few."""
    return connection.execute("DELETE FROM requests WHERE left_at < ?", (before,)).rowcount


def _look(
    connection: SqlConnection, request: int, on_progress: Callable[[float], None]
) -> str | None:
    row = connection.execute(
        "SELECT progress, answer, done FROM requests WHERE id = ?", (request,)
    ).fetchone()
    if row is None:
        raise Unanswered("the request is gone: it was left more than a day ago")
    share, result, done = row
    on_progress(share)
    return str(result) if done else None
