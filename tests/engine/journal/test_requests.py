"""A command asks a running service, hears how far it is and what came of it, and is never left hanging."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from tollkeeper.engine.journal import requests, schema
from tollkeeper.engine.journal.contract import Unanswered
from tollkeeper.engine.journal.lock import holder, lock


@pytest.fixture
def prepared(folder):
    schema.prepare(folder)
    return folder


def served(folder):
    return lambda: holder(folder) is not None


@pytest.fixture
def command(prepared):
    with closing(schema.connect(prepared)) as connection:
        yield connection


@pytest.fixture
def service(prepared):
    with closing(schema.connect(prepared)) as connection:
        yield connection


def test_a_request_is_open_until_it_is_answered(command, service):
    first = requests.leave_request(command, '{"publish": "checkout"}', "ana", now=1)
    second = requests.leave_request(command, '{"activate": 3}', "bob", now=2)
    assert requests.open_requests(service) == [
        requests.CommandRequest(first, '{"publish": "checkout"}', "ana"),
        requests.CommandRequest(second, '{"activate": 3}', "bob"),
    ]
    requests.answer_request(service, first, '{"version": 4}')
    assert [request.id for request in requests.open_requests(service)] == [second]


def test_what_a_former_owner_took_is_answered_by_the_next_and_what_it_left_is_done(
    command, service
):
    taken, left = (requests.leave_request(command, "{}", "ana", now=1) for _ in range(2))
    requests.take_request(service, taken)
    requests.answer_abandoned(service, '"it has ended"')
    told = requests.await_answer(command, lambda: True, taken, lambda _share: None)
    assert told == '"it has ended"'
    assert [request.id for request in requests.open_requests(service)] == [left]


def test_the_command_hears_of_progress_and_gets_the_answer(command, service, prepared):
    request = requests.leave_request(command, "{}", "ana", now=1)
    heard = threading.Event()
    shares = []

    def on_progress(share):
        shares.append(share)
        if share == 0.5:
            heard.set()

    def serve():
        requests.note_progress(service, request, 0.5)
        heard.wait(30)
        requests.answer_request(service, request, '{"version": 4}')

    with lock(prepared, "serve"):
        serving = threading.Thread(target=serve)
        serving.start()
        answer = requests.await_answer(command, served(prepared), request, on_progress)
        serving.join()
    assert answer == '{"version": 4}'
    assert 0.5 in shares
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_request_whose_service_ended_is_taken_back(command, service, prepared):
    request = requests.leave_request(command, "{}", "ana", now=1)
    with pytest.raises(Unanswered, match="the service ended before it answered"):
        requests.await_answer(command, served(prepared), request, lambda _share: None)
    assert requests.open_requests(service) == []


def test_an_answer_left_just_before_the_service_ended_is_still_heard(command, service, prepared):
    request = requests.leave_request(command, "{}", "ana", now=1)
    requests.answer_request(service, request, "{}")
    assert requests.await_answer(command, served(prepared), request, lambda _share: None) == "{}"


def test_a_request_that_was_removed_ends_the_waiting(command, service, prepared):
    request = requests.leave_request(command, "{}", "ana", now=1)
    assert requests.purge_requests(service, before=2) == 1
    with lock(prepared, "serve"), pytest.raises(Unanswered, match="the request is gone"):
        requests.await_answer(command, served(prepared), request, lambda _share: None)


@pytest.mark.anyio
async def test_a_service_reads_and_answers_requests_through_its_journal(sqlite_journal, folder):
    with closing(schema.connect(folder)) as command:
        request = requests.leave_request(command, "{}", "ana", now=1)
        assert [left.id for left in await sqlite_journal.requests()] == [request]
        await sqlite_journal.run(
            lambda connection: requests.answer_request(connection, request, "{}")
        )
        assert requests.await_answer(command, served(folder), request, lambda _share: None) == "{}"
