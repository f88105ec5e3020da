"""The one error body: `{"errors": [{"field", "type", "message"}]}` for every status."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from litestar.exceptions import HTTPException
from litestar.types import Send

from tollkeeper.engine.intake.violations import Violation, ViolationType
from tollkeeper.engine.journal.contract import Damaged, JournalError, Overloaded
from tollkeeper.engine.registry.errors import Conflict, Forbidden, NotFound, Refused
from tollkeeper.engine.search.ask import IndexUnavailable

JSON = b"application/json"


class Problem(Exception):  # noqa: N818 - an answer, not a fault of ours
    """A request that is answered with `status` and these violations."""

    def __init__(
        self,
        status: int,
        violations: Sequence[Violation],
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(status, violations)
        self.status = status
        self.violations = violations
        self.headers = headers


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every error: violations, each with field, type and message."""

    errors: Sequence[Violation]


def error_body(violations: Sequence[Violation]) -> bytes:
    return msgspec.json.encode(ErrorBody(violations))


def invalid(violations: Sequence[Violation]) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, violations)


def invalid_at(field: str, type_: ViolationType, message: str) -> Problem:
    """The answer to a request that breaks one rule."""
    return invalid([Violation(field, type_, message)])


def unauthorized() -> Problem:
    return Problem(
        HTTPStatus.UNAUTHORIZED,
        [Violation("authorization", "invalid_credentials", "invalid access credentials")],
        [(b"www-authenticate", b"Bearer")],
    )


def forbidden(scope: str) -> Problem:
    message = f"this key has no `{scope}` scope"
    return Problem(HTTPStatus.FORBIDDEN, [Violation("authorization", "forbidden", message)])


def forbidden_owner() -> Problem:
    message = "over HTTP a user makes keys for themselves alone"
    return Problem(HTTPStatus.FORBIDDEN, [Violation("key.owner", "forbidden", message)])


def of_all_merchants() -> Problem:
    message = "this tells of all merchants, and you see some of them alone"
    return Problem(HTTPStatus.FORBIDDEN, [Violation("authorization", "forbidden", message)])


def suspended() -> Problem:
    message = "the account is suspended"
    return Problem(HTTPStatus.FORBIDDEN, [Violation("authorization", "forbidden", message)])


def not_found(field: str, message: str) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, [Violation(field, "not_found", message)])


def unknown_path() -> Problem:
    return not_found("path", "there is nothing at this path")


def nothing_at_root(*, has_console: bool) -> Problem:
    """The answer at `/`, which says where the interface and the pages are."""
    pages = ", and the pages for people are at `/console`" if has_console else ""
    message = f"the interface is below `/v1`, `/schema` describes it{pages}"
    return not_found("path", f"there is nothing at this path: {message}")


def method_not_allowed(allowed: str) -> Problem:
    message = f"use {allowed} here"
    return Problem(
        HTTPStatus.METHOD_NOT_ALLOWED,
        [Violation("method", "method_not_allowed", message)],
        [(b"allow", allowed.encode())],
    )


def too_large(limit: int) -> Problem:
    message = f"a body has at most {limit} bytes"
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        [Violation("body", "too_large", message)],
        [(b"connection", b"close")],
    )


def unsupported(header: str, message: str) -> Problem:
    return Problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        [Violation(header, "unsupported_media_type", message)],
        [(b"accept-encoding", b"identity")],
    )


def incomplete_body() -> Problem:
    message = "the client left before the body was whole"
    return Problem(HTTPStatus.BAD_REQUEST, [Violation("body", "malformed_request", message)])


def nobody_waits() -> Problem:
    message = "the client left before there was an answer"
    return Problem(HTTPStatus.BAD_REQUEST, [Violation("body", "malformed_request", message)])


def malformed_head(header: str, message: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, [Violation(header, "malformed_request", message)])


def slow_body(seconds: float) -> Problem:
    message = f"the body did not arrive within {seconds:g} seconds"
    return Problem(
        HTTPStatus.REQUEST_TIMEOUT,
        [Violation("body", "timeout", message)],
        [(b"connection", b"close")],
    )


def unavailable(message: str) -> Problem:
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        [Violation("body", "unavailable", message)],
        [(b"retry-after", b"1")],
    )


def too_many_requests(
    message: str, retry_after: int, left: Sequence[tuple[bytes, bytes]] = ()
) -> Problem:
    """`left` are the rate limit headers of the empty bucket, if it is a key's."""
    return Problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        [Violation("authorization", "too_many_requests", message)],
        [(b"retry-after", str(retry_after).encode()), *left],
    )


def taken(field: str) -> Problem:
    """The id that was sent in `field` is already in use."""
    return invalid_at(field, "taken", "the account has already used this id")


def not_kept(error: JournalError) -> Problem:
    if isinstance(error, Overloaded):
        return unavailable("too many requests wait to be written")
    if isinstance(error, IndexUnavailable):
        return unavailable("payments can't be searched at the moment")
    if isinstance(error, Damaged):
        # Not the entry itself, which may belong to another account; `toll verify` and other
        # commands show it.
        return unavailable("an entry that this needs is damaged: a backup has to be restored")
    return unavailable("nothing can be written at the moment")


def as_problem(error: Exception) -> Problem | None:
    """Return the answer to a request that failed with `error`; None for an internal error."""
    match error:
        case Problem():
            return error
        case Forbidden():
            return Problem(HTTPStatus.FORBIDDEN, error.violations)
        case NotFound():
            return Problem(HTTPStatus.NOT_FOUND, error.violations)
        case Conflict():
            return Problem(HTTPStatus.CONFLICT, error.violations)
        case Refused():
            return invalid(error.violations)
        case JournalError():
            return not_kept(error)
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return unknown_path()
        case HTTPException(status_code=status, detail=detail):
            # Errors that Litestar raises itself, such as an invalid number in a path or an unusual
            # `Host`.
            return Problem(status, [Violation("headers", "malformed_request", detail.lower())])
    return None


def internal_error() -> Problem:
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        [Violation("body", "internal_error", "something went wrong here; it has been logged")],
    )


async def answer(send: Send, problem: Problem) -> None:
    """Send the problem's status and body."""
    body = error_body(problem.violations)
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [
                (b"content-type", JSON),
                (b"content-length", str(len(body)).encode()),
                *problem.headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
