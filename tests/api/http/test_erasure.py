"""One person's data erased: gone from every file, and everything else as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from shutil import copytree
from typing import Any
from unittest import mock

import pytest
from structlog.testing import capture_logs

from tollkeeper.engine.filling import fill
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal import reads, retention
from tollkeeper.engine.journal.contract import Unavailable
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.monitors.alerts import Transition, transitions_of
from tollkeeper.engine.privacy import make_erasures, person
from tollkeeper.engine.privacy.erasure import take_up_erasures
from tollkeeper.engine.registry.changes import ErasureAsked, decode_change
from tollkeeper.engine.search.find_naming import find_naming
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.shadows.record import drain
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.tests.api.http.service import Service, errors, open_service, payment
from tollkeeper.tests.service.process import PATIENCE_S

pytestmark = pytest.mark.anyio

SIGN_INS = """event sign_in
  field account: string required
  field ip: ip
  field note: string
  field result: "success" | "failure" required
  field risk: number
  metric failures = count(events by account over 1d where result == "failure")
  metric addresses = distinct(events.ip by account over 1d)
  metric results = count(events by result over 1d)
  monitor guessing "Many failed sign-ins" when failures >= 2
"""
PAYMENTS = """event payment
  monitor busy when count(payments by device.fingerprint.id over 1d) >= 2
  monitor crowded when count(payments by merchant.id over 1d) >= 3
"""
RULE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition attacked when events.sign_in.failures[user.id] >= 1 then deny
  condition returning when age(payments by user.id) > 1d then challenge
  condition busy when count(payments by merchant.id over 1d) > 100 then deny
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
ANA = {"id": "u-ana", "email": "Ana@mail.example"}
TRACES = (b"u-ana", b"na@mail.example", b"d-ana", b"203.0.113.77", b"198.51.100.9")


@pytest.fixture
async def shop(service: Service) -> Service:
    """A shop where Ana and Bob signed in and paid, both with alerts; Ana's name is all over."""
    client = service.client
    for path, text in (
        ("event-types/sign_in", SIGN_INS),
        ("event-types/payment", PAYMENTS),
        ("rules/gate", RULE),
        ("rules/gate", RULE.replace("> 100", "> 200")),
    ):
        answer = await client.post(f"/v1/{path}/versions?publish=true", content=text)
        assert answer.status_code == 201, answer.text
    await client.put("/v1/rules/gate/shadow", json={"version": 1})
    webhook = {"url": "https://shop.example/alerts", "secrets": ["a-secret-of-letters"]}
    answer = await client.put("/v1/webhooks", json={"webhook": webhook})
    assert answer.status_code == 200, answer.text
    for number in range(3):
        await sign_in(service, f"s-a{number}", "u-ana", ip="198.51.100.9", note="Ana, by phone")
        await sign_in(service, f"s-b{number}", "u-bob")
    await sign_in(service, "s-mail", "ANA@mail.example")
    device = {"ip_address": "203.0.113.77", "fingerprint": {"id": "d-ana", "provider": "basic"}}
    for number in range(2):
        await pay(service, f"p-a{number}", user=ANA, device=device, metadata={"phone": "555-0199"})
        await pay(service, f"p-b{number}", user={"id": "u-bob"})
    await pay(service, "p-guest", user={"email": ANA["email"]}, order={"id": "u-ana"})
    updated = {"payment": {"status": "failed"}}
    assert (await client.patch("/v1/payments/p-a0", json=updated)).status_code == 200
    for id_, text in (
        ("p-a0", "her phone is 555-0199"),
        ("p-b0", "the same device as of u-ana"),
        ("p-b1", "called, no answer"),
    ):
        body = {"note": {"text": text}}
        assert (await client.post(f"/v1/payments/{id_}/notes", json=body)).status_code == 201
    entries = [{"value": value} for value in ("u-ana", "ana@mail.example", "u-bob")]
    await client.put("/v1/lists/blocked/entries", json={"entries": entries})
    await client.request("DELETE", "/v1/lists/blocked/entries", json={"entries": entries[1:2]})
    await drain(service.engine)
    return service


def follow(service: Service) -> None:
    """The index takes in what is there, from which an erasure knows where to look."""
    with closing(Follower(service.folder)) as follower:
        follower.catch_up()


async def sign_in(service: Service, id_: str, account: str, **data: Any) -> None:
    event = {"type": "sign_in", "id": id_, "data": {"account": account, "result": "failure"} | data}
    answer = await service.client.post("/v1/events", json={"event": event})
    assert answer.status_code == 201, answer.text


async def pay(service: Service, id_: str, **changed: Any) -> dict[str, Any]:
    headers = {"idempotency-key": f"{id_} of {changed['user'].get('id')}"}
    body = payment(id=id_, analyze=ASKED, **changed)
    answer = await service.client.post("/v1/payments", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    analyses: dict[str, Any] = answer.json()["payment"]["analyses"]
    return analyses


async def erase(service: Service, user: str = "u-ana") -> dict[str, Any]:
    answer = await service.client.post("/v1/erasures", json={"user": user})
    assert answer.status_code == 200, answer.text
    erased: dict[str, Any] = answer.json()["erasure"]
    return erased


def stored(service: Service) -> bytes:
    """Every byte of the data folder, write-ahead logs and all."""
    return b"".join(path.read_bytes() for path in service.folder.iterdir())


def entries(service: Service, *kinds: Kind) -> dict[int, Entry]:
    return {
        entry.sequence: entry
        for batch in service.engine.journal.replay(kinds=kinds)
        for entry in batch
    }


async def alerts(service: Service) -> list[tuple[str, list[Any], dict[str, Any]]]:
    found = (await service.client.get("/v1/alerts")).json()["alerts"]
    return [(each["monitor"], each["key"], each["values"]) for each in found]


async def test_nothing_of_a_person_is_left_in_any_file_while_the_service_runs(
    shop: Service,
) -> None:
    assert all(trace in stored(shop) for trace in TRACES)
    erased = await erase(shop)
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []
    del erased["person"]
    assert erased == {"payments": 3, "events": 4, "alerts": 2, "list_entries": {"blocked": 1}}


@pytest.mark.parametrize("is_behind", [False, True])
async def test_an_index_tells_an_erasure_where_to_look_and_the_journal_what_came_since(
    shop: Service, is_behind: bool
) -> None:
    follow(shop)
    if is_behind:
        await sign_in(shop, "s-later", "u-ana")
        await pay(shop, "p-later", user=ANA)
        updated = {"payment": {"status": "failed"}}
        assert (await shop.client.patch("/v1/payments/p-a1", json=updated)).status_code == 200
    looked_through: list[int] = []
    replay_entries = reads.replay_entries

    def replay(*arguments: Any) -> Any:
        for batch in replay_entries(*arguments):
            looked_through.extend(entry.sequence for entry in batch)
            yield batch

    with mock.patch.object(reads, "replay_entries", replay):
        erased = await erase(shop)
    del erased["person"]
    came = {"payments": 4, "events": 5} if is_behind else {"payments": 3, "events": 4}
    assert erased == {**came, "alerts": 2, "list_entries": {"blocked": 1}}
    assert bool(looked_through) == is_behind
    follow(shop)
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []
    assert find_naming(shop.folder, 1, ["u-ana", ANA["email"]])[1:3] == ([], [])


async def test_notes_about_a_person_say_nothing_any_more_and_others_stay(shop: Service) -> None:
    await erase(shop)
    said = {}
    for id_ in ("p-a0", "p-b0", "p-b1"):
        (note,) = (await shop.client.get(f"/v1/payments/{id_}/notes")).json()["notes"]
        said[id_] = note["text"]
    assert said == {
        "p-a0": "erased",
        "p-b0": "erased",
        "p-b1": "called, no answer",
    }


async def test_what_was_decided_about_others_does_not_change_by_a_byte(shop: Service) -> None:
    kinds = (Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.SHADOW)
    before = entries(shop, *kinds)
    decisions = (await shop.client.get("/v1/decisions")).json()
    explained = await explanation(shop, "p-b1")
    assert explained["repeated"]
    await erase(shop)
    after = entries(shop, *kinds)
    assert {before[sequence].id for sequence in before if before[sequence] != after[sequence]} == {
        *("p-a0", "p-a1", "p-guest"),
        *("s-a0", "s-a1", "s-a2", "s-mail"),
    }
    assert (await shop.client.get("/v1/decisions")).json() == decisions
    assert await explanation(shop, "p-b1") == explained


async def explanation(service: Service, id_: str) -> dict[str, Any]:
    """How a decision came about; the other records that were counted aside."""
    answer = await service.client.get(f"/v1/payments/{id_}/explanation")
    found: dict[str, Any] = answer.json()["explanation"]
    for program in (found["scorecard"], found["rule"]):
        for history in program["histories"]:
            del history["records"], history["note"]
    return found


async def test_what_is_left_of_an_event_can_still_be_counted(shop: Service) -> None:
    await erase(shop)
    bodies = {entry.id: entry.body for entry in entries(shop, Kind.EVENT).values()}
    assert bodies["s-a0"] == b'{"type":"sign_in","version":1,"data":{"result":"failure"}}'
    path = "/v1/event-types/sign_in/metrics/results?key=failure"
    assert (await shop.client.get(path)).json()["metric"]["value"] == 7


async def test_what_came_with_an_event_is_read_once_however_many_alerts_it_raised(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitors = "".join(f"  monitor m{number} when seen >= 1\n" for number in range(50))
    metric = "  metric seen = count(events by user over 1h)\n"
    text = f"event visit\n  field user: string required\n{metric}{monitors}"
    path = "/v1/event-types/visit/versions?publish=true"
    assert (await service.client.post(path, content=text)).status_code == 201
    body = {"event": {"type": "visit", "data": {"user": "u-1"}}}
    answer = await service.client.post("/v1/events", json=body)
    assert len(answer.json()["event"]["alerts"]) == 50
    await drain(service.engine)
    read = []

    def reading(outcome: bytes | None) -> tuple[Transition, ...]:
        read.append(outcome)
        return transitions_of(outcome)

    monkeypatch.setattr("tollkeeper.engine.events.erase_alerts.transitions_of", reading)
    assert (await erase(service, "u-2"))["alerts"] == 0
    assert len(read) == 1
    assert (await erase(service, "u-1"))["alerts"] == 50


async def test_alerts_stay_in_number_and_show_nothing_of_the_person(shop: Service) -> None:
    before = await alerts(shop)
    assert ("guessing", ["u-ana"], {"failures": 2}) in before
    assert ("busy", ["d-ana"], {"count(payments by device.fingerprint.id over 1d)": 2}) in before
    await erase(shop)
    after = await alerts(shop)
    assert len(after) == len(before)
    gone = [each for each in before if each not in after]
    assert [each[1] for each in gone] == [["d-ana"], ["u-ana"]]
    assert after.count(("guessing", [None], {})) == after.count(("busy", [None], {})) == 1


async def test_a_monitor_begins_anew_for_who_was_erased(shop: Service) -> None:
    await erase(shop)
    before = await alerts(shop)
    for number in range(2):
        await sign_in(shop, f"again-{number}", "u-ana")
    assert await alerts(shop) == [("guessing", ["u-ana"], {"failures": 2}), *before]


async def test_windows_count_what_is_left_as_they_would_after_a_restart(shop: Service) -> None:
    await erase(shop)
    await same_as_after_a_restart(shop)


async def same_as_after_a_restart(shop: Service) -> None:
    live = await shop.engine.windows.status(1)
    plans = shop.engine.active[1].plans()
    windows = [plan for plan in plans if plan.over is not None]
    shop.engine.windows = Windows(shop.engine.journal.last_sequence())
    await fill(shop.engine, 1, windows, lambda _: None)
    anew = await shop.engine.windows.status(1)
    assert sizes(live) == sizes(anew)


def sizes(status: Any) -> list[tuple[str, int]]:
    return sorted((each.digest, each.entries) for each in status.series)


async def test_a_returning_person_is_new(shop: Service) -> None:
    await erase(shop)
    analyses = await pay(shop, "p-new", user=ANA)
    assert analyses["rule"]["condition"] is None


@pytest.mark.parametrize(
    ("cut", "is_index_lost"), [*((cut, False) for cut in range(1, 7)), (6, True)]
)
async def test_an_erasure_that_was_cut_off_is_done_by_the_next_one(
    shop: Service, monkeypatch: pytest.MonkeyPatch, cut: int, is_index_lost: bool
) -> None:
    journal, done = shop.engine.journal, 0
    rewrite = journal.rewrite

    async def failing(*arguments: Any, **named: Any) -> int:
        nonlocal done
        done += 1
        if done == cut:
            raise Unavailable("planted")
        return await rewrite(*arguments, **named)

    monkeypatch.setattr(journal, "rewrite", failing)
    follow(shop)
    answer = await shop.client.post("/v1/erasures", json={"user": "u-ana"})
    assert answer.status_code == 503
    if is_index_lost:
        (shop.folder / "search.db").unlink()
    follow(shop)
    await erase(shop)
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []


async def test_an_erasure_that_was_killed_between_any_two_entries_is_done_by_the_next_one(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    update, done, cut = retention._update, 0, 1

    def failing(connection: Any, entries: Any) -> int:
        nonlocal done
        done += 1
        if done == cut:
            raise Unavailable("planted")
        return update(connection, entries)

    monkeypatch.setattr(retention, "_update", failing)
    monkeypatch.setattr(retention, "CHUNK", 1)
    monkeypatch.setattr(retention, "STEP_S", 0)
    follow(shop)
    # As a process that is killed forgets what it was about; each time it comes one entry further.
    while (await shop.client.post("/v1/erasures", json={"user": "u-ana"})).status_code != 200:
        shop.engine.unfinished_erasures.clear()
        done, cut = 0, 2
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []


@pytest.mark.parametrize("step", ["forget_values", "first_and_last"])
async def test_an_erasure_that_was_killed_while_it_counted_is_done_by_the_next_one(
    shop: Service, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(shop.engine.journal, step, mock.AsyncMock(side_effect=Unavailable("")))
    answer = await shop.client.post("/v1/erasures", json={"user": "u-ana"})
    assert answer.status_code == 503
    monkeypatch.undo()
    shop.engine.unfinished_erasures.clear()
    await erase(shop)
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []


async def test_an_erasure_that_failed_is_made_without_being_asked_for_again(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_erasures, "_EVERY_S", 0.01)
    await erase_in_vain(shop, monkeypatch)
    with capture_logs() as lines:
        retries = asyncio.create_task(make_erasures.make_erasures(shop.engine))
        async with asyncio.timeout(PATIENCE_S):
            while not lines:
                await asyncio.sleep(0.01)
            assert lines[0]["event"] == "not_erased"
            monkeypatch.undo()
            while shop.engine.unfinished_erasures:
                await asyncio.sleep(0.01)
        retries.cancel()
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []
    (erased, *_) = [
        each
        for each in (await shop.client.get("/v1/audit")).json()["audit"]
        if each["action"] == "person_erased"
    ]
    assert erased["by"].startswith("toll_")


@asynccontextmanager
async def started_again(shop: Service, folder: Path) -> AsyncIterator[Service]:
    """A service on the folder as a kill now leaves it, which makes the erasures that are open."""
    copytree(shop.folder, folder)
    async with open_service(folder) as again:
        await take_up_erasures(again.engine)
        making = asyncio.create_task(make_erasures.make_erasures(again.engine))
        async with asyncio.timeout(PATIENCE_S):
            while again.engine.unfinished_erasures:
                await asyncio.sleep(0.01)
        making.cancel()
        yield again


async def erase_in_vain(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for Ana's erasure, which fails in its middle."""
    monkeypatch.setattr(
        service.engine.journal, "forget_values", mock.AsyncMock(side_effect=Unavailable("planted"))
    )
    assert (await service.client.post("/v1/erasures", json={"user": "u-ana"})).status_code == 503


def requests_in(service: Service) -> list[bytes | None]:
    """The encrypted identifiers in the requests for erasures, None where one is erased."""
    changes = (decode_change(entry).change for entry in entries(service, Kind.CHANGE).values())
    return [each.sealed for each in changes if isinstance(each, ErasureAsked)]


async def told(service: Service) -> list[dict[str, Any]]:
    trail = (await service.client.get("/v1/audit")).json()["audit"]
    return [each for each in trail if each["action"] == "person_erased"]


async def test_an_erasure_that_was_killed_is_made_after_the_next_start(
    shop: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await erase_in_vain(shop, monkeypatch)
    assert None not in requests_in(shop)
    async with started_again(shop, tmp_path / "again") as again:
        assert [trace for trace in TRACES if trace.lower() in stored(again).lower()] == []
        assert requests_in(again) == [None]
        assert not again.engine.state.accounts[1].erasures
        (erased,) = await told(again)
        assert erased["by"] in shop.client.headers["authorization"]


async def test_an_erasure_that_was_killed_before_it_was_told_is_told_after_the_next_start(
    shop: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rewrite = shop.engine.journal.rewrite

    async def killed_once_done(*arguments: Any, **named: Any) -> int:
        rewritten = await rewrite(*arguments, **named)
        if None in requests_in(shop):
            raise Unavailable("planted")
        return rewritten

    monkeypatch.setattr(shop.engine.journal, "rewrite", killed_once_done)
    assert (await shop.client.post("/v1/erasures", json={"user": "u-ana"})).status_code == 503
    assert await told(shop) == []
    async with started_again(shop, tmp_path / "again") as again:
        assert len(await told(again)) == 1
        assert not again.engine.state.accounts[1].erasures


async def test_an_erasure_asked_for_under_a_key_that_is_lost_is_warned_of_until_it_is_sent_again(
    shop: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await erase_in_vain(shop, monkeypatch)
    (shop.folder / KEY_FILE).unlink()
    with capture_logs() as lines:
        async with started_again(shop, tmp_path / "again") as again:
            (warned,) = [line for line in lines if line["event"] == "not_erased"]
            assert "send it again" in warned["reason"]
            await erase(again)
            assert requests_in(again) == [None, None]
            assert not again.engine.state.accounts[1].erasures


async def test_an_erasure_that_is_asked_for_twice_at_once_is_open_until_both_are_made(
    shop: Service,
) -> None:
    await asyncio.gather(erase(shop), erase(shop))
    assert requests_in(shop) == [None, None]
    assert not shop.engine.state.accounts[1].erasures


@pytest.mark.parametrize(
    ("step", "cut"),
    [
        *(("rewrite", cut) for cut in range(1, 8)),
        ("forget_values", 1),
        *(("first_and_last", cut) for cut in range(1, 4)),
    ],
)
async def test_after_an_erasure_that_was_cut_off_and_done_again_windows_count_what_is_left(
    shop: Service, monkeypatch: pytest.MonkeyPatch, step: str, cut: int
) -> None:
    journal, done = shop.engine.journal, 0
    whole = getattr(journal, step)

    async def failing(*arguments: Any, **named: Any) -> Any:
        nonlocal done
        done += 1
        if done == cut:
            raise Unavailable("planted")
        return await whole(*arguments, **named)

    monkeypatch.setattr(journal, step, failing)
    answer = await shop.client.post("/v1/erasures", json={"user": "u-ana"})
    assert answer.status_code == 503
    monkeypatch.undo()
    await erase(shop)
    await same_as_after_a_restart(shop)


async def test_a_person_of_more_names_than_one_query_takes_is_erased_whole(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person, "_ASKED", 1)
    await erase(shop)
    assert [trace for trace in TRACES if trace.lower() in stored(shop).lower()] == []


async def test_another_account_keeps_what_it_has_of_a_user_of_the_same_name(shop: Service) -> None:
    await shop.account("kiosk")
    async with shop.client_with(await shop.key("kiosk", "admin")) as kiosk:
        await kiosk.post("/v1/payments", json=payment(id="k-1", user=ANA))
        await erase(shop)
        known = (await kiosk.get("/v1/payments/k-1")).json()["payment"]
    assert known["user"] == ANA


async def test_an_erasure_names_a_user(shop: Service) -> None:
    answer = await shop.client.post("/v1/erasures", json={})
    assert errors(answer) == [("user", "missing")]
    answer = await shop.client.post("/v1/erasures", json={"user": ""})
    assert answer.status_code == 422
