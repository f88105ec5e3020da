"""The two clients, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx

from tollkeeper.api.client import calls
from tollkeeper.api.client.answers import CreatedPayment, ReportedPayment
from tollkeeper.api.client.calls import (
    ClientCall,
    is_conclusive,
    pause_before_next,
    read_answer,
    unanswered_error,
)

T = TypeVar("T")

ANSWER_TIMEOUT_S: Final = 2.0
ATTEMPTS: Final = 3
_KEY: Final = re.compile(r"[!-~]+")


class Tollkeeper:
    """Calls the service at `url`, such as `http://127.0.0.1:8000`, with one key.

    A request is sent up to `attempts` times until it is answered conclusively, and never repeated
    if it could take effect twice. Every method raises `RequestError` if the service refuses the
    request and `UnansweredError` if there is no conclusive answer. A client may be used by many
    threads; `transport` is httpx's. Raises `ValueError` for a key that can't be one.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = ANSWER_TIMEOUT_S,
        attempts: int = ATTEMPTS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._attempts = attempts
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/v1",
            headers=_headers(key),
            timeout=timeout,
            transport=transport,
        )

    def create_payment(
        self, payment: Mapping[str, Any], idempotency_key: str | None = None
    ) -> CreatedPayment:
        """Create a payment and have it analysed; `payment` is the body's member of that name."""
        return self._send(calls.creation_call(payment, idempotency_key)).payment

    def update_payment(self, payment_id: str, update: Mapping[str, Any]) -> ReportedPayment:
        """Report a payment's final status, and other new data."""
        return self._send(calls.update_call(payment_id, update)).payment

    def submit_event(
        self, event: Mapping[str, Any], idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Submit an event; returns the answer's `event` with its metrics and alerts."""
        return self._send(calls.event_call(event, idempotency_key)).event

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call any other operation of the interface that answers JSON: `call("GET", "/lists")`; a
        `body` that is a text, such as a rule's, is sent as it is.
        """
        return self._send(calls.any_call(method, path, body))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, call: ClientCall[T]) -> T:
        for attempt in range(self._attempts):
            answer, failure = None, None
            try:
                answer = self._http.request(
                    call.method, call.path, content=call.content(), headers=call.headers
                )
            except httpx.RequestError as error:
                failure = error
            if answer is not None and is_conclusive(answer):
                return read_answer(call, answer)
            pause = pause_before_next(call, attempt, answer)
            if pause is None or attempt + 1 == self._attempts:
                raise unanswered_error(call, answer) from failure
            time.sleep(pause)
        raise ValueError("a request is sent at least once")


class AsyncTollkeeper:
    """An asynchronous `Tollkeeper`."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = ANSWER_TIMEOUT_S,
        attempts: int = ATTEMPTS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._attempts = attempts
        self._http = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/v1",
            headers=_headers(key),
            timeout=timeout,
            transport=transport,
        )

    async def create_payment(
        self, payment: Mapping[str, Any], idempotency_key: str | None = None
    ) -> CreatedPayment:
        """Create a payment and have it analysed; `payment` is the body's member of that name."""
        return (await self._send(calls.creation_call(payment, idempotency_key))).payment

    async def update_payment(self, payment_id: str, update: Mapping[str, Any]) -> ReportedPayment:
        """Report a payment's final status, and other new data."""
        return (await self._send(calls.update_call(payment_id, update))).payment

    async def submit_event(
        self, event: Mapping[str, Any], idempotency_key: str | None = None
    ) -> dict[str, Any]:
        """Submit an event; returns the answer's `event` with its metrics and alerts."""
        return (await self._send(calls.event_call(event, idempotency_key))).event

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call any other operation of the interface: `call("GET", "/lists")`."""
        return await self._send(calls.any_call(method, path, body))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _send(self, call: ClientCall[T]) -> T:
        for attempt in range(self._attempts):
            answer, failure = None, None
            try:
                answer = await self._http.request(
                    call.method, call.path, content=call.content(), headers=call.headers
                )
            except httpx.RequestError as error:
                failure = error
            if answer is not None and is_conclusive(answer):
                return read_answer(call, answer)
            pause = pause_before_next(call, attempt, answer)
            if pause is None or attempt + 1 == self._attempts:
                raise unanswered_error(call, answer) from failure
            await asyncio.sleep(pause)
        raise ValueError("a request is sent at least once")


def _headers(key: str) -> dict[str, str]:
    if _KEY.fullmatch(key) is None:
        # Sent as a header it would fail later, in a message that shows it.
        raise ValueError("a key is visible ASCII characters alone, without a line's end")
    return {"authorization": f"Bearer {key}", "content-type": "application/json"}
