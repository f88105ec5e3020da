"""Several nodes on one journal: any of them answers, and when one ends another goes on as it would have."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import copy
from signal import SIGCONT, SIGSTOP
from ssl import create_default_context
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest

from tollkeeper.api.http.forward import node_context
from tollkeeper.engine.folder_key import KEY_FILE
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.source import Database, JournalSource, open_journal_for_reading
from tollkeeper.engine.velocity.snapshot import FILE
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.api.http.test_forward import make_certificates
from tollkeeper.tests.engine.journal.test_fencing import do, expire, with_standby, without_standby
from tollkeeper.tests.service.process import PATIENCE_S, Running, new_key, serving, toll, until

RULE = """rule gate
  list blocked: string
  condition known when user.id in @blocked then deny
  condition often when count(payments by user.id over 1h) > 3 then challenge
  condition young when age(payments by user.id) < 1m then allow
"""
DECIDED = {"analyze": {"bot_behaviour": True, "rule": {"name": "gate"}}}


@contextmanager
def nodes(
    folder: Path, count: int, *options: str, last: Sequence[str] = ()
) -> Iterator[tuple[str, list[Running]]]:
    """A key of account `shop`, and nodes of which the first owns the journal; the last one has more
    options."""
    folder.mkdir(exist_ok=True)
    key = new_key(folder / "0", "payments", "rules", "admin", "personal:read")
    (folder / "gate.rule").write_text(RULE)
    assert (
        toll(folder / "0", "publish", str(folder / "gate.rule"), "--account", "shop").returncode
        == 0
    )
    with ExitStack() as stack, ThreadPoolExecutor(count) as starting:

        def start(number: int) -> Running:
            (folder / str(number)).mkdir(exist_ok=True)
            if number:
                copy(folder / "0" / KEY_FILE, folder / str(number))
            given = (*options, *(last if number == count - 1 else ()))
            return stack.enter_context(serving(folder / str(number), given))

        yield key, [start(0), *starting.map(start, range(1, count))]


class Shop:
    """Clients of one account, one for each node."""

    def __init__(self, clients: list[httpx.Client]) -> None:
        self.clients = clients

    def pay(self, node: int, id_: str, user: str = "ana") -> str | None:
        """The condition that was met. The key lets what an owner did not answer be sent on again."""
        body = payment(
            id=id_, user={"id": user, "email": "ana@shop.example"}, timestamp=AT, **DECIDED
        )
        headers = {"idempotency-key": id_}
        answer = self.clients[node].post("/v1/payments", json=body, headers=headers)
        assert answer.status_code == 201, answer.text
        met = answer.json()["payment"]["analyses"]["rule"]["condition"]
        return met and str(met["id"])

    def update(self, node: int, id_: str) -> None:
        answer = self.clients[node].patch(
            f"/v1/payments/{id_}", json={"payment": {"status": "failed"}}
        )
        assert answer.status_code == 200, answer.text


AT = datetime.now(UTC).replace(microsecond=0).isoformat()


@contextmanager
def clients_of(key: str, running: Sequence[Running]) -> Iterator[Shop]:
    headers = {"authorization": f"Bearer {key}"}
    with ExitStack() as stack:
        clients = [
            httpx.Client(base_url=each.url, headers=headers, timeout=PATIENCE_S, verify=False)
            for each in running
        ]
        yield Shop([stack.enter_context(each) for each in clients])


def whole(url: str) -> int:
    """How many nodes could own the journal at once."""
    ((count,),) = do(
        url, "SELECT count(*) FROM nodes JOIN shards ON place >= last_place WHERE is_whole"
    )
    return int(count)


def stream(shop: Shop, nodes: Sequence[int], ids: range) -> list[str | None]:
    """Payments and updates, each to another node."""
    met = []
    for number in ids:
        node = nodes[number % len(nodes)]
        met.append(shop.pay(node, f"p{number}", "ana" if number % 3 else f"u{number % 2}"))
        if number % 2:
            shop.update(node, f"p{number}")
    return met


def block(folder: Path, user: str, account: str = "shop") -> None:
    (folder / "blocked.csv").write_text(f"value\n{user}\n")
    listed = ("lists", "import", "blocked", str(folder / "blocked.csv"), "--account", account)
    assert toll(folder, *listed).returncode == 0


def told(source: JournalSource) -> list[tuple[object, ...]]:
    """What a journal has of payments, but for sequence numbers and times of arrival."""

    async def read() -> list[tuple[object, ...]]:
        async with open_journal_for_reading(source) as journal:
            batches = journal.replay(kinds=(Kind.PAYMENT, Kind.UPDATE))
            entries = [entry for batch in batches for entry in batch]
            return [(e.kind, e.id, e.time, e.body, e.outcome) for e in entries]

    return asyncio.run(read())


def test_any_node_answers_and_the_next_owner_goes_on_as_one_service_would(
    tmp_path: Path, on_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        nodes(tmp_path, 3) as (key, running),
        clients_of(key, running) as shop,
        httpx.Client(verify=False, timeout=PATIENCE_S) as former,
    ):
        met = stream(shop, (0, 1, 2), range(8))
        block(tmp_path / "1", "bob")
        assert shop.pay(2, "b1", "bob") == "known"
        other = toll(tmp_path / "2", "keys", "create", "--account", "shop").stdout.strip()
        former.headers["authorization"] = f"Bearer {other}"
        asked = [f"{each.url}/v1/payments/p1" for each in running]
        assert {former.get(url).status_code for url in asked} == {200}
        toll(tmp_path / "1", "keys", "revoke", other[:13], "--account", "shop")
        assert [former.get(url).status_code for url in asked] == [401] * 3
        until(lambda: whole(on_database), 3)
        taken_before = takings_over(tmp_path)
        running[0].kill()
        expire(on_database)
        # Two nodes are left: the first request waits until one of them owns the journal.
        met += stream(shop, (1, 2), range(8, 16))
        assert shop.pay(2, "b2", "bob") == "known"
        assert "taken" in shop.clients[2].post("/v1/payments", json=payment(id="p5")).text
        assert former.get(asked[1]).status_code == 401
        shown = json.loads(toll(tmp_path / "1", "nodes", "--json").stdout)
        assert sum(each["owner"] for each in shown) == 1
        until(lambda: [figure(node, "toll_entries_behind") for node in running[1:]], [0, 0])
        # One, unless the machine stood still for longer than a lease.
        taken = sum(figure(node, "toll_takeovers_total") or 0 for node in running[1:])
        assert taken >= 1
        until(lambda: takings_over(tmp_path) - taken_before, taken)
        assert all(figure(node, "toll_forwarded_total") > 0 for node in running[1:])
        assert [figure(node, "toll_shards") for node in running[1:]] == [1, 1]
        # The tests' server has no standby.
        assert [figure(node, "toll_standby_awaited") for node in running[1:]] == [0, 0]
    kept = told(Database(on_database, tmp_path / "1"))
    monkeypatch.delenv("TOLL_DATABASE")
    with nodes(tmp_path / "embedded", 1) as (key, running), clients_of(key, running) as shop:
        same = stream(shop, (0,), range(8))
        block(tmp_path / "embedded/0", "bob")
        assert shop.pay(0, "b1", "bob") == "known"
        assert same + stream(shop, (0,), range(8, 16)) == met
        assert shop.pay(0, "b2", "bob") == "known"
    assert kept == told(tmp_path / "embedded/0")


def test_an_owner_that_ends_in_order_hands_over_and_one_that_was_paused_follows(
    tmp_path: Path, on_database: str
) -> None:
    ours = tmp_path / "ours"
    make_certificates(ours)
    with (
        nodes(tmp_path, 3, "--node-tls", str(ours)) as (key, running),
        clients_of(key, running) as shop,
    ):
        until(lambda: whole(on_database), 3)
        require_certificates(tmp_path, on_database, ours)
        ending = threading.Event()

        def pay_on() -> int:
            number = 0
            while not ending.is_set() or number % 5:
                shop.pay(1 + number % 2, f"t{number}", "tom")
                number += 1
            return number

        with ThreadPoolExecutor(1) as paying:
            paid = paying.submit(pay_on)
            try:
                running[0].process.terminate()
                assert running[0].process.wait(PATIENCE_S) == 0
            finally:
                ending.set()
            count = paid.result()
        kept = [each[1] for each in told(Database(on_database, tmp_path / "1"))]
        assert kept == [f"t{number}" for number in range(count)]
        # The owner of the two that are left is paused for longer than its lease.
        owner = 1 if "owns" in state_of(tmp_path, running[1]) else 2
        other = 3 - owner
        running[owner].process.send_signal(SIGSTOP)
        expire(on_database)
        try:
            assert shop.pay(other, "q0", "tom") == "often"
        finally:
            running[owner].process.send_signal(SIGCONT)
        # What it is asked before it has noticed gets a 503, as nothing was done.
        until(lambda: shop.clients[owner].get("/v1/payments/q0").status_code, 200)
        assert shop.pay(owner, "q1", "tom") == "often"
        assert [shop.clients[node].get("/v1/payments/q0").status_code for node in (1, 2)] == [
            200
        ] * 2


def require_certificates(folder: Path, url: str, ours: Path) -> None:
    """No node answers a peer that has no certificate of its authority."""
    others = folder / "others"
    make_certificates(others)
    stranger = node_context(others)
    stranger.load_verify_locations(ours / "authority.pem")
    nameless = create_default_context(cafile=str(ours / "authority.pem"))
    ((owner,),) = do(url, "SELECT address FROM shards")
    assert (
        httpx.get(f"{owner}/health/live", verify=node_context(ours), timeout=PATIENCE_S).status_code
        == 200
    )
    for (address,) in do(url, "SELECT address FROM nodes"):
        for context in (stranger, nameless):
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{address}/health/live", verify=context, timeout=PATIENCE_S)
        plain = address.replace("https", "http")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{plain}/health/live", timeout=PATIENCE_S)


def test_a_follower_is_ready_as_long_as_it_sees_the_database_and_an_owner_in_it(
    tmp_path: Path, on_database: str
) -> None:
    with (
        another_role(on_database) as (role, url),
        nodes(tmp_path, 2, last=("--database", url)) as (_, running),
    ):
        until(lambda: whole(on_database), 2)
        owner, follower = running
        until(lambda: [readiness(node)[0] for node in running], [200, 200])
        do(on_database, f"ALTER ROLE {role} NOLOGIN")
        do(
            on_database,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s",
            role,
        )
        until(lambda: readiness(follower), NO_OWNER)
        until(lambda: readiness(owner)[0], 200)
        do(on_database, f"ALTER ROLE {role} LOGIN")
        until(lambda: readiness(follower)[0], 200)
        # As long as no standby hears of its taking over nobody owns the journal.
        without_standby(on_database, "shards")
        owner.kill()
        expire(on_database)
        until(lambda: readiness(follower), NO_OWNER)
        with_standby(on_database, "shards")
        until(lambda: readiness(follower)[0], 200)
        assert state_of(tmp_path, follower) == "owns"


def figure(node: Running, name: str) -> float | None:
    """A node's own figure, once it tells any: while a journal changes hands it can't. None where this
    is not among them."""

    def told() -> str:
        answer = httpx.get(f"{node.url}/metrics", timeout=PATIENCE_S, verify=False)
        return answer.text if answer.status_code == 200 else ""

    found = re.search(rf"^{name} (.*)$", until(told), re.MULTILINE)
    return float(found[1]) if found else None


def takings_over(folder: Path) -> int:
    """How often nodes have come to own the journal, as they have logged."""
    lines = (folder / "serve.log").read_text().splitlines()
    return sum(json.loads(line)["event"] == "ready" for line in lines)


NO_OWNER = (503, "no node is known to own the journal")


def readiness(node: Running) -> tuple[int, str]:
    answer = httpx.get(f"{node.url}/health/ready", timeout=PATIENCE_S, verify=False)
    told = answer.json()
    return answer.status_code, told["errors"][0]["message"] if "errors" in told else ""


@contextmanager
def another_role(url: str) -> Iterator[tuple[str, str]]:
    """A role of the database server, and the database's address for whoever has it.

    It has the name of the database, with which it is dropped.
    """
    parts = urlsplit(url)
    role = parts.path.removeprefix("/")
    do(url, f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'test'")
    netloc = f"{role}:test@{parts.netloc.rpartition('@')[2]}"
    yield role, urlunsplit(parts._replace(netloc=netloc))


def state_of(folder: Path, node: Running) -> str:
    shown = json.loads(toll(folder / "1", "nodes", "--json").stdout)
    (found,) = [each for each in shown if each["process"].startswith(f"{node.process.pid} ")]
    return "owns" if found["owner"] else "follows"


def test_a_node_that_was_away_counts_nothing_of_who_was_erased_meanwhile(
    tmp_path: Path, on_database: str
) -> None:
    with nodes(tmp_path, 2) as (key, running), clients_of(key, running) as shop:
        until(lambda: whole(on_database), 2)
        met = [shop.pay(0, f"p{number}") for number in range(4)]
        assert met[-1] == "often"
        running[0].process.terminate()
        assert running[0].process.wait(PATIENCE_S) == 0
        assert (tmp_path / "0" / FILE).exists()
        erased = shop.clients[1].post("/v1/erasures", json={"user": "ana"})
        assert erased.status_code == 200, erased.text
        with serving(tmp_path / "0") as back, clients_of(key, [back]) as again:
            until(lambda: whole(on_database), 2)
            running[1].kill()
            expire(on_database)
            assert again.pay(0, "p4") == met[0]


def test_a_node_that_joins_takes_windows_and_ages_from_the_owner_and_goes_on_as_it_would_have(
    tmp_path: Path, on_database: str
) -> None:
    ours = tmp_path / "ours"
    make_certificates(ours)
    with (
        nodes(tmp_path, 1, "--node-tls", str(ours)) as (key, running),
        clients_of(key, running) as shop,
    ):
        met = [shop.pay(0, f"p{number}") for number in range(3)]
        assert met == [None, "young", "young"]
        (tmp_path / "1").mkdir()
        copy(tmp_path / "0" / KEY_FILE, tmp_path / "1")
        with (
            serving(tmp_path / "1", ("--node-tls", str(ours))) as joined,
            clients_of(key, [joined]) as after,
        ):
            until(lambda: whole(on_database), 2)
            assert (tmp_path / "1" / FILE).read_bytes() == (tmp_path / "0" / FILE).read_bytes()
            assert not [*(tmp_path / "1").glob("*.arriving"), *(tmp_path / "0").glob("*.copy")]
            ((owner,),) = do(on_database, "SELECT address FROM shards")
            for proof in ({}, {"toll-proof": "0" * 32}):
                asked = httpx.get(
                    f"{owner}/node/kept/{FILE}",
                    headers=proof,
                    verify=node_context(ours),
                    timeout=PATIENCE_S,
                )
                assert asked.status_code == 401
            running[0].kill()
            expire(on_database)
            assert [after.pay(0, f"p{number}") for number in (3, 4)] == ["often", "often"]
            assert after.pay(0, "u0", "una") is None
            assert after.pay(0, "u1", "una") == "young"
    lines = [json.loads(line) for line in (tmp_path / "serve.log").read_text().splitlines()]
    assert [line["event"] for line in lines if "windows_" in line["event"]] == ["windows_taken"]
