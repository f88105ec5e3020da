"""Clients that send to any node, switch to another when one doesn't answer, and record the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from typing import Any

import httpx

from tollkeeper.bench.faults.checker import EVENT_TYPE, RULE
from tollkeeper.bench.faults.history import NO_ANSWER, Attempt, Operation

USERS, ADDRESSES = 5, 3
NOTICES = (
    "payment.decided",
    "payment.updated",
    "label.created",
    "rule.published",
    "alert.raised",
)
_SPELL_S = 120
"""Users and addresses are replaced after this time, because recounting takes the square of their
payments.
"""
_ANSWER_S = 6.0
_PATIENCE_S = 25.0
_PAUSE_S = 0.15
_OPEN = frozenset((NO_ANSWER, 429, 500, 502, 503))


@dataclass
class World:
    """What all clients share: the nodes' addresses, the accounts' keys, and the recorded
    operations.
    """

    urls: Sequence[str]
    keys: dict[str, str]
    seed: int
    begun: float = field(default_factory=time.monotonic)
    ending: Event = field(default_factory=Event)
    operations: list[Operation] = field(default_factory=list)


class Client:
    """A client of one account; its ids contain `number`, so that they differ from others'."""

    def __init__(self, world: World, account: str, number: int) -> None:
        self._world, self._account, self._number = world, account, number
        self._random = Random(f"{world.seed}-{number}")
        self._count = 0
        self._http: list[httpx.Client] = []

    def run(self) -> None:
        """Send requests until the world ends."""
        headers = {"authorization": f"Bearer {self._world.keys[self._account]}"}
        actions: dict[Callable[[], object], int] = {
            self._pay: 40,
            self._pay_and_update: 20,
            self._pay_and_label: 12,
            self._sign_in: 12,
            self._block: 3,
            self._erase: 2,
        }
        with ExitStack() as stack:
            self._http = [
                stack.enter_context(
                    httpx.Client(base_url=url, headers=headers, timeout=_ANSWER_S, verify=False)
                )
                for url in self._world.urls
            ]
            while not self._world.ending.is_set():
                (action,) = self._random.choices(list(actions), weights=list(actions.values()))
                action()
                time.sleep(self._random.expovariate(50))

    def publish(self) -> None:
        """Publish versions of the rule until the world ends; the first also makes the list and the
        event type.
        """
        headers = {"authorization": f"Bearer {self._world.keys[self._account]}"}
        with ExitStack() as stack:
            self._http = [
                stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=_ANSWER_S))
                for url in self._world.urls
            ]
            while not self._world.ending.wait(self._random.uniform(2, 5)):
                self._publish()

    def begin(self, webhook: str) -> None:
        """Make what must exist before the first payment; notices of all kinds go to `webhook`."""
        headers = {"authorization": f"Bearer {self._world.keys[self._account]}"}
        with httpx.Client(base_url=self._world.urls[0], headers=headers, timeout=30) as client:
            self._http = [client]
            notices = json.dumps({"webhook": {"url": webhook, "kinds": NOTICES}})
            self._insist("PUT", "/v1/webhooks", notices)
            self._insist("POST", "/v1/event-types/sign_in/versions?publish=true", EVENT_TYPE)
            self._publish()

    def _insist(self, method: str, path: str, content: str) -> None:
        """Retry until it is done: a new node may still hand a shard over."""
        deadline = time.monotonic() + _PATIENCE_S
        while not 200 <= (attempt := self._attempt(method, path, content, {})).status < 300:
            assert time.monotonic() < deadline, attempt
            time.sleep(_PAUSE_S)

    def _pay(self) -> tuple[str, str] | None:
        return self._pay_as(self._user(), self._address())

    def _pay_as(self, user: str, address: str) -> tuple[str, str] | None:
        """Return the payment's id and status; None if it is unknown whether it is stored."""
        id_ = self._new("p")
        late = self._random.choice((0.0, 0.0, 0.0, 0.5, 6.0, 45.0)) * self._random.random()
        sent = {
            "user": user,
            "address": address,
            "amount": self._random.randrange(100, 5000) / 100,
            "timestamp": self._moment(late),
        }
        body = {
            "id": id_,
            "type": "purchase",
            "currency": "EUR",
            "amount": sent["amount"],
            "timestamp": sent["timestamp"],
            "method": {"type": "card"},
            "merchant": {"id": "m"},
            "user": {"id": user},
            "device": {"ip_address": address},
            "analyze": {"rule": {"name": "gate"}},
        }
        again = self._random.random() < 0.1
        paid = self._do(
            "payment", id_, sent, "POST", "/v1/payments", {"payment": body}, key=id_, again=again
        )
        return (id_, "initiated") if _is_done(paid) else None

    def _pay_and_update(self) -> None:
        paid = self._pay()
        if paid is None:
            return
        (id_, status), is_certain = paid, True
        for _ in range(self._random.randrange(1, 3)):
            mark, final = self._new("u"), self._random.choice(("failed", "declined", "blocked"))
            attempt = {
                "id": mark,
                "status": "declined",
                "connector": {"id": "acquirer", "response_code": "05"},
            }
            body = {"payment": {"status": final, "transactions": [attempt]}}
            path = f"/v1/payments/{id_}"
            updated = self._do("update", id_, {"mark": mark}, "PATCH", path, body)
            if not _is_done(updated):
                return
            # A node may still execute an unanswered request after the next one was sent.
            is_certain = is_certain and all(_is_certain(each) for each in updated.attempts)
            status = final
        self._look(id_, status if is_certain else None)

    def _pay_and_label(self) -> None:
        paid = self._pay()
        if paid is None:
            return
        label = self._random.choice(("fraud", "fraud", "legitimate"))
        reason = self._new("l")
        path, body = f"/v1/payments/{paid[0]}/labels/review", {"label": label, "reason": reason}
        self._do("label", paid[0], {"reason": reason}, "PUT", path, body)
        self._look(paid[0], paid[1])

    def _look(self, id_: str, status: str | None) -> None:
        self._do("look", id_, {"status": status}, "GET", f"/v1/payments/{id_}", None)

    def _sign_in(self) -> None:
        id_, user = self._new("e"), self._user()
        at = self._moment(3.0 * self._random.random())
        body = {"event": {"type": "sign_in", "id": id_, "timestamp": at, "data": {"user": user}}}
        self._do("event", id_, {"user": user}, "POST", "/v1/events", body, key=id_)

    def _block(self) -> None:
        user = self._new("b")
        path, body = "/v1/lists/blocked/entries", {"entries": [{"value": user}]}
        if _is_done(self._do("put", user, {}, "PUT", path, body)):
            self._pay_as(user, self._address())
            if _is_done(self._do("remove", user, {}, "DELETE", path, body)):
                self._pay_as(user, self._address())

    def _erase(self) -> None:
        user = self._new("g")
        address = f"192.0.{self._number}.{self._count % 250}"
        for _ in range(2):
            if self._pay_as(user, address) is None:
                return
        if _is_done(self._do("erase", user, {}, "POST", "/v1/erasures", {"user": user})):
            self._pay_as(user, address)

    def _publish(self) -> None:
        mark = self._new("v")
        text = RULE.format(mark=mark, often=self._random.randrange(1, 9))
        self._do("version", mark, {}, "POST", "/v1/rules/gate/versions?publish=true", text)

    def _do(
        self,
        kind: str,
        subject: str,
        sent: Any,
        method: str,
        path: str,
        body: Any,
        *,
        key: str | None = None,
        again: bool = False,
    ) -> Operation:
        """Send to one node after another until the result is certain; `again` sends it once more
        after success.
        """
        headers = {} if key is None else {"idempotency-key": key}
        content = body if isinstance(body, str) else None if body is None else json.dumps(body)
        attempts: list[Attempt] = []
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            attempt = self._attempt(method, path, content, headers)
            attempts.append(attempt)
            if attempt.status not in _OPEN or time.monotonic() > deadline:
                break
            time.sleep(_PAUSE_S)
        if again and 200 <= attempts[-1].status < 300:
            attempts.append(self._attempt(method, path, content, headers))
        operation = Operation(kind, self._account, subject, sent, tuple(attempts))
        self._world.operations.append(operation)
        return operation

    def _attempt(
        self, method: str, path: str, content: str | None, headers: dict[str, str]
    ) -> Attempt:
        node = self._random.randrange(len(self._http))
        begun = time.monotonic() - self._world.begun
        try:
            answer = self._http[node].request(method, path, content=content, headers=headers)
            status, answered = answer.status_code, answer.json()
        except (httpx.TransportError, json.JSONDecodeError) as error:
            status, answered = NO_ANSWER, type(error).__name__
        ended = time.monotonic() - self._world.begun
        return Attempt(node, round(begun, 3), round(ended, 3), status, answered)

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._number}-{self._count}"

    def _user(self) -> str:
        return f"{self._spell()}-{self._random.randrange(USERS)}"

    def _address(self) -> str:
        return f"198.51.{self._spell() % 250}.{self._random.randrange(ADDRESSES)}"

    def _spell(self) -> int:
        return int((time.monotonic() - self._world.begun) / _SPELL_S)

    def _moment(self, late_s: float) -> str:
        return (datetime.now(UTC) - timedelta(seconds=1 + late_s)).isoformat()


def _is_done(operation: Operation) -> bool:
    return any(200 <= each.status < 300 for each in operation.attempts)


def _is_certain(attempt: Attempt) -> bool:
    return 200 <= attempt.status < 300 or attempt.status in (429, 503)
