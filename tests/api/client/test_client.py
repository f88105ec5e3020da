"""The client against a real service: what it sends counts once, whatever happens on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.api.client.answers import BotAnalysis
from tollkeeper.client import (
    AsyncTollkeeper,
    RequestError,
    SignatureError,
    Tollkeeper,
    UnansweredError,
    read_webhook,
)
from tollkeeper.engine.webhooks.delivery import webhook_signature
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import PATIENCE_S, new_key, serving, toll

PAYMENT = payment()["payment"]
SUCCEEDED = {
    "status": "succeeded",
    "transactions": [{"status": "succeeded", "connector": {"id": "c", "response_code": "00"}}],
}
DELIVERY = """event delivery
  field order: string
  metric deliveries = count(events by order over 1d)
"""


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A running service's address, and a test key."""
    folder = tmp_path_factory.mktemp("client") / "data"
    new_key(folder, "payments")
    made = toll(folder, "keys", "create", "--account", "shop", "--test", "--scope", "admin")
    with serving(folder) as service:
        yield service.url, made.stdout.strip()


@pytest.fixture
def client(access: tuple[str, str]) -> Iterator[Tollkeeper]:
    with Tollkeeper(*access, timeout=PATIENCE_S) as opened:
        yield opened


def test_a_payment_is_created_and_updated(client: Tollkeeper) -> None:
    created = client.create_payment(PAYMENT)
    assert created.analyses.bot_behaviour
    assert created.analyses.bot_behaviour.action in ("allow", "challenge", "deny")
    assert client.update_payment(created.id, SUCCEEDED).status == "succeeded"
    assert client.call("GET", f"/payments/{created.id}")["payment"]["status"] == "succeeded"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_client_that_is_awaited_does_the_same(access: tuple[str, str]) -> None:
    async with AsyncTollkeeper(*access, timeout=PATIENCE_S) as client:
        created = await client.create_payment(PAYMENT)
        assert (await client.update_payment(created.id, SUCCEEDED)).id == created.id
        with pytest.raises(RequestError):
            await client.submit_event({"type": "unheard", "data": {}})
        assert (await client.call("GET", "/payments/count"))["count"] >= 0


def test_an_id_of_any_characters_reaches_its_payment(client: Tollkeeper) -> None:
    for payment_id in ("a/b?c d%é", ".", "..", "a/../b"):
        created = client.create_payment({**PAYMENT, "id": payment_id})
        assert client.update_payment(created.id, SUCCEEDED).id == payment_id


def test_an_exact_amount_is_sent_as_the_number_that_it_is(client: Tollkeeper) -> None:
    created = client.create_payment({**PAYMENT, "amount": Decimal("49.90")})
    assert client.call("GET", f"/payments/{created.id}")["payment"]["amount"] == 49.9


def test_a_text_is_sent_as_it_is(client: Tollkeeper) -> None:
    with pytest.raises(RequestError) as refused:
        client.call("POST", "/lists/none/previews", "value\nä\n")
    assert refused.value.status == 404


def test_what_is_wrong_is_told_with_its_places(client: Tollkeeper) -> None:
    with pytest.raises(RequestError, match=r"payment\.currency") as refused:
        client.create_payment({**PAYMENT, "currency": "XXQ"})
    assert refused.value.status == 422
    assert refused.value.errors[0]["type"] == "invalid_value"
    assert refused.value.request_id


class FirstAnswerLost(httpx.HTTPTransport):
    """Loses the first answer on its way."""

    lost = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        answer.read()
        if not self.lost:
            self.lost = True
            raise httpx.ReadTimeout("the answer is lost", request=request)
        return answer


@pytest.mark.parametrize("known", [True, False])
def test_an_update_whose_answer_was_lost_adds_each_attempt_once(
    access: tuple[str, str], client: Tollkeeper, known: bool
) -> None:
    created = client.create_payment(PAYMENT)
    [attempt] = SUCCEEDED["transactions"]
    update = {**SUCCEEDED, "transactions": [{**attempt, **({"id": "t-1"} if known else {})}]}
    with Tollkeeper(*access, timeout=PATIENCE_S, transport=FirstAnswerLost()) as losing:
        if known:
            assert losing.update_payment(created.id, update).status == "succeeded"
        else:
            with pytest.raises(UnansweredError):
                losing.update_payment(created.id, update)
    stored = client.call("GET", f"/payments/{created.id}")["payment"]
    assert len(stored["transactions"]) == 1


def counted(access: tuple[str, str], attempts: int, timeout: float) -> tuple[Tollkeeper, list[str]]:
    """A client, and the idempotency keys of all that it sends."""
    sent: list[str] = []

    class Counting(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent.append(request.headers.get("idempotency-key", ""))
            return super().handle_request(request)

    return Tollkeeper(*access, timeout=timeout, attempts=attempts, transport=Counting()), sent


def test_an_unavailable_service_is_asked_again(access: tuple[str, str]) -> None:
    client, sent = counted(access, 2, PATIENCE_S)
    with client, pytest.raises(UnansweredError, match="the answer 503"):
        client.create_payment({**PAYMENT, "metadata": {"toll_test": {"status": 503}}})
    assert len(sent) == 2
    assert len(set(sent)) == 1


def test_a_payment_whose_answer_was_late_counts_once(
    access: tuple[str, str], client: Tollkeeper
) -> None:
    slow, sent = counted(access, 2, 0.4)
    late = {**PAYMENT, "id": "late", "metadata": {"toll_test": {"delay_ms": 1500}}}
    with slow, pytest.raises(UnansweredError, match="no answer"):
        slow.create_payment(late)
    assert len(set(sent)) == 1
    created = client.create_payment(late, sent[0])
    assert created.id == "late"
    assert len(client.call("GET", "/payments/late")["history"]) == 1


def answered(status: int, body: bytes = b"", **headers: str) -> Tollkeeper:
    """A client whose every request gets this answer, of a proxy perhaps."""
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    transport = httpx.MockTransport(
        lambda _: httpx.Response(status, headers=sent, stream=httpx.ByteStream(body))
    )
    return Tollkeeper("http://127.0.0.1:1", "toll_key", transport=transport)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"errors": "no"}', b'{"errors": [{}]}'])
def test_a_refusal_in_other_words_than_the_service_s_is_told_by_its_status(body: bytes) -> None:
    with answered(403, body) as client, pytest.raises(RequestError, match="403: body: Forbidden"):
        client.create_payment(PAYMENT)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"\xff"])
def test_a_success_in_other_words_than_the_service_s_is_no_answer(body: bytes) -> None:
    with answered(200, body) as client:
        with pytest.raises(UnansweredError, match="the answer 200 has another body"):
            client.create_payment(PAYMENT)
        with pytest.raises(UnansweredError):
            client.submit_event({})


def test_values_and_members_that_a_later_service_answers_are_passed_on() -> None:
    later = b"""{"payment": {"id": "p", "status": "refunded", "at": 1, "analyses": {"rule": null,
        "bot_behaviour": {"action": "review", "score": 0.5, "reason": "new"}}}}"""
    with answered(200, later) as client:
        created = client.create_payment(PAYMENT)
        assert created.status == client.update_payment("p", {}).status == "refunded"
        assert isinstance(created.analyses.bot_behaviour, BotAnalysis)
        assert created.analyses.bot_behaviour.action == "review"


def test_an_answer_that_can_t_be_unpacked_is_no_answer() -> None:
    client = answered(201, b"no gzip", content_encoding="gzip")
    with client, pytest.raises(UnansweredError, match="no answer"):
        client.call("POST", "/labels", {"labels": []})


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_request_that_may_have_been_done_is_not_told_as_refused(status: int) -> None:
    with answered(status) as client, pytest.raises(UnansweredError, match=f"the answer {status}"):
        client.call("POST", "/labels", {"labels": []})


@pytest.mark.parametrize("wait", ["6", "86400", "9" * 400])
def test_a_service_that_asks_for_a_long_wait_is_not_waited_for(
    wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    with answered(503, retry_after=wait) as client, pytest.raises(UnansweredError):
        client.create_payment(PAYMENT)


@pytest.mark.parametrize("wait", ["", "soon", "-1", "²", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wait_in_other_words_than_seconds_is_the_client_s_own(
    wait: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    with answered(503, retry_after=wait) as client, pytest.raises(UnansweredError):
        client.create_payment(PAYMENT)
    assert len(waited) == 2
    assert max(waited) <= 0.2


@pytest.mark.parametrize("key", ["", "toll_secret\n", "toll secret", "toll_secrét"])
def test_a_key_that_can_t_be_one_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="visible ASCII") as refused:
        Tollkeeper("http://127.0.0.1:1", key)
    assert "toll" not in str(refused.value)


def test_what_may_not_be_sent_twice_is_sent_once(access: tuple[str, str]) -> None:
    unreachable = Tollkeeper("http://127.0.0.1:1", access[1], attempts=5, timeout=0.2)
    started = time.monotonic()
    with unreachable, pytest.raises(UnansweredError):
        unreachable.call("POST", "/labels", {"labels": []})
    assert time.monotonic() - started < PATIENCE_S


@given(
    body=st.binary(max_size=200),
    secret=st.text(min_size=16, max_size=40),
    age=st.integers(-400, 400),
)
def test_a_webhook_is_read_when_its_secret_signed_it_lately(
    body: bytes, secret: str, age: int
) -> None:
    said = b'{"alert": 1}'
    signature = webhook_signature(["another-secret-of-32-letters", secret], 10_000, said)
    if abs(age) <= 300:
        assert read_webhook(said, signature, [secret], now=10_000 + age) == {"alert": 1}
    else:
        with pytest.raises(SignatureError):
            read_webhook(said, signature, [secret], now=10_000 + age)
    with pytest.raises(SignatureError):
        read_webhook(said + b" " + body, signature, [secret], now=10_000)
    with pytest.raises(SignatureError):
        read_webhook(said, signature, [secret + "x"], now=10_000)


@pytest.mark.parametrize(
    "signature", [None, "", "t=", "t=x,v1=00", "t=1,t=2,v1=00", "v1=00", "t=10000"]
)
def test_a_signature_that_is_none_is_refused(signature: str | None) -> None:
    with pytest.raises(SignatureError):
        read_webhook(b"{}", signature, ["an-example-secret"], now=10_000)
