"""A damaged journal never leaves a service rebuilding for ever: it stops, or serves without it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tollkeeper.engine.journal import schema
from tollkeeper.engine.journal.contract import Damaged
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.privacy.erasure import erase_user
from tollkeeper.engine.search.find_naming import find_naming
from tollkeeper.engine.search.follow import Follower
from tollkeeper.tests.api.http.service import NOW, open_service, payment

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    async with open_service(tmp_path / "data") as service:
        for _ in range(3):
            await service.client.post("/v1/payments", json=payment())
    return tmp_path / "data"


def forget_snapshot(folder: Path) -> None:
    """As after a crash: the windows are read from the journal."""
    for path in folder.iterdir():
        if not path.name.startswith("tollkeeper") and path.suffix != ".db":
            path.unlink()


def damage(folder: Path, kind: int, body: bytes = b"\0\xff") -> int:
    """Spoils the last entry of a kind, with this for a body; its sequence number."""
    forget_snapshot(folder)
    with closing(schema.connect(folder)) as connection:
        (last,) = connection.execute(
            "SELECT max(place) FROM journal WHERE kind = ?", (kind,)
        ).fetchone()
        connection.execute("UPDATE journal SET body = ? WHERE place = ?", (body, last))
    return int(last)


async def test_an_entry_that_can_t_be_read_ends_the_start_and_is_named(folder: Path) -> None:
    sequence = damage(folder, 1)
    async with open_engine(folder, "serve", clock=lambda: NOW) as engine:
        with pytest.raises(Damaged) as found:
            await rebuild(engine, lambda _share: None)
        assert not engine.ready.is_set()
    assert f"entry {sequence} (payment, account 1) of `tollkeeper.db` can't be read" in str(
        found.value
    )
    assert "toll verify" in str(found.value)


async def test_a_service_may_start_without_what_is_damaged(folder: Path) -> None:
    sequence = damage(folder, 1)
    async with open_engine(folder, "serve", clock=lambda: NOW, damage="skip") as engine:
        await rebuild(engine, lambda _share: None)
        assert engine.obstacle() is None
        assert engine.damage.passed_over == {sequence}


async def test_what_is_damaged_is_passed_over_by_the_index_and_refuses_an_erasure_by_its_name(
    folder: Path,
) -> None:
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    sequence = damage(folder, 1)
    async with open_engine(folder, "serve", clock=lambda: NOW, damage="skip") as engine:
        await rebuild(engine, lambda _share: None)
        user = str(payment()["payment"]["user"]["id"])
        with pytest.raises(Damaged, match=rf"entry {sequence} \(payment, .*may name the person"):
            await erase_user(engine, 1, "test", user)
    (folder / "search.db").unlink()
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    found = find_naming(folder, 1, [user])
    # The request for the erasure is an entry, too.
    assert (len(found.payments), found.last) == (2, sequence + 1)


@pytest.mark.parametrize("kind", [Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.LABEL])
async def test_what_was_damaged_before_the_index_was_made_refuses_the_erasure_of_whom_it_names(
    folder: Path, kind: Kind
) -> None:
    async with open_service(folder) as service:
        api = service.client
        sent = {"payment": {"status": "failed", "user": {"id": "u-1"}}}
        assert (await api.post("/v1/payments", json=payment(id="p"))).status_code == 201
        assert (await api.patch("/v1/payments/p", json=sent)).status_code == 200
        label = {"label": "fraud", "reason": "u-1 said so"}
        assert (await api.put("/v1/payments/p/labels/review", json=label)).status_code == 200
        watch = "event sign_in\n  field who: string required\n"
        stored = await api.post("/v1/event-types/sign_in/versions?publish=true", content=watch)
        assert stored.status_code == 201, stored.text
        event = {"event": {"type": "sign_in", "id": "e", "data": {"who": "u-1"}}}
        assert (await api.post("/v1/events", json=event)).status_code == 201
    sequence = damage(folder, kind, b'{"u-1')
    with closing(Follower(folder)) as follower:
        follower.catch_up()
    async with open_engine(folder, "serve", clock=lambda: NOW, damage="skip") as engine:
        await rebuild(engine, lambda _share: None)
        await erase_user(engine, 1, "test", "somebody else")
        with pytest.raises(Damaged, match=rf"entry {sequence} \(.*may name the person"):
            await erase_user(engine, 1, "test", "u-1")


async def test_a_damaged_change_of_what_is_configured_is_never_passed_over(folder: Path) -> None:
    sequence = damage(folder, 4)
    with pytest.raises(Damaged, match=rf"entry {sequence} \(change"):
        async with open_engine(folder, "serve", clock=lambda: NOW, damage="skip"):
            pass


async def test_a_corrupt_page_ends_the_start_and_the_file_is_named(folder: Path) -> None:
    forget_snapshot(folder)
    path = folder / "tollkeeper.db"
    with closing(schema.connect_for_reading(folder)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'journal' AND pagetype = 'leaf'"
        ).fetchall()
    content = bytearray(path.read_bytes())
    begin = (pages[-1][0] - 1) * schema.PAGE_BYTES
    content[begin : begin + schema.PAGE_BYTES] = b"\xff" * schema.PAGE_BYTES
    path.write_bytes(content)
    with pytest.raises(Damaged, match=r"`tollkeeper.db` can't be read"):
        async with open_engine(folder, "serve", clock=lambda: NOW) as engine:
            await rebuild(engine, lambda _share: None)


async def test_a_read_only_service_says_so(folder: Path) -> None:
    async with open_engine(folder, "serve", clock=lambda: NOW, damage="read-only") as engine:
        assert engine.obstacle() == "the service was started read-only"
