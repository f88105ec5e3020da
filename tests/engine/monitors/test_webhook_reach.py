"""Which addresses a webhook may have, in every form that a resolver understands."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from weakref import ref

import httpcore
import pytest

from tollkeeper.engine.monitors.webhook_reach import (
    _is_public,
    check_reach,
    connections,
    resolving_for,
)
from tollkeeper.engine.registry.errors import Invalid

PRIVATE = [
    "0",
    "0.0.0.0",
    "00",
    "0x0",
    "127.1",
    "127.0.0.1.",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "10.1",
    "192.168.257",
    "169.254.169.254",
    "2852039166",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "shop.localhost",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[64:ff9b:1:2:3:4:a00:1]",
    "[2002:7f00:1::]",
    "[2001:0:c633:6401:0:ffff:80ff:fffe]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[ff02::1]",
    "[2001:db8::1]",
]
ODD = ["256.256.256.256", "1.2.3.4.5", "%31%32%37.0.0.1", "shop..", "-", ".", "a b"]
PUBLIC = [
    "shop.example",
    "hooks_1.shop.example",
    "xn--bcher-kva.example",
    "a",
    "0x.example",
    "93.184.216.34",
    "[2606:2800:220:1::1]",
    "[64:ff9b::5db8:d822]",
    "[64:ff9b:1::5db8:d822]",
    "[::ffff:93.184.216.34]",
    "1e100.example:8443",
]


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_address_is_refused_in_each_of_its_forms(host: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_reach(f"https://{host}/alerts", "public")
    assert [each.type for each in refused.value.violations] == ["private_address"]
    check_reach(f"https://{host}/alerts", "any")


@pytest.mark.parametrize("host", ODD)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_reach(f"https://{host}/alerts", "public")
    assert [each.type for each in refused.value.violations] == ["invalid_format"]


@pytest.mark.parametrize("host", PUBLIC)
def test_a_name_and_a_public_address_are_taken(host: str) -> None:
    check_reach(f"https://{host}/alerts", "public")


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "fe80::1%lo", "64:ff9b::a00:1", "nonsense"])
def test_what_a_name_resolves_to_is_held_to_the_same(text: str) -> None:
    assert not _is_public(text)


@pytest.mark.parametrize("host", ["0", "127.1", "2130706433", "localhost", "[::1]"])
def test_no_connection_is_made_to_a_private_address(host: str) -> None:
    async def ask() -> None:
        async with connections("public") as pool:
            await pool.request("POST", f"https://{host}:9/")

    with pytest.raises(httpcore.ConnectError, match="the host has a private address"):
        asyncio.run(ask())


@pytest.mark.anyio
async def test_names_that_are_never_resolved_hold_up_no_other_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, resolved = Event(), Event()

    def resolve(*_: object, **__: object) -> list[object]:
        begun.set()
        resolved.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with connections("public") as pool:
        asked = [
            asyncio.create_task(pool.request("POST", f"https://slow-{number}.example/"))
            for number in range(100)
        ]
        try:
            while not begun.is_set():
                await asyncio.sleep(0)
            async with asyncio.timeout(30):
                assert await asyncio.to_thread(lambda: "done") == "done"
        finally:
            resolved.set()
            await asyncio.gather(*asked, return_exceptions=True)


@pytest.mark.anyio
async def test_an_accounts_slow_names_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = Event()

    def resolve(host: str, *_: object, **__: object) -> list[object]:
        if host.startswith("slow"):
            resolved.wait()
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    async def ask(pool: httpcore.AsyncConnectionPool, account: int, host: str) -> str:
        resolving_for.set(account)
        with pytest.raises(httpcore.ConnectError) as refused:
            await pool.request("POST", f"https://{host}.example/")
        return str(refused.value)

    async with connections("public") as pool:
        slow = [asyncio.create_task(ask(pool, 1, f"slow-{number}")) for number in range(1000)]
        try:
            async with asyncio.timeout(30):
                quick = await asyncio.create_task(ask(pool, 2, "quick"))
            assert quick == "the name of the host is not known"
        finally:
            resolved.set()
            told = await asyncio.gather(*slow)
        assert "too many names" in told[-1]
        # Once its names are resolved, the account has others resolved.
        assert await ask(pool, 1, "quick") == quick


@pytest.mark.anyio
async def test_what_an_accounts_names_were_resolved_to_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Addresses(list[object]):
        """Can be referred to weakly."""

    found: list[ref[Addresses]] = []

    def resolve(*_: object, **__: object) -> list[object]:
        addresses = Addresses([(0, 0, 0, "", ("127.0.0.1", 9))])
        found.append(ref(addresses))
        return addresses

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with connections("public") as pool:
        for account in range(3):
            resolving_for.set(account)
            with pytest.raises(httpcore.ConnectError):
                await pool.request("POST", "https://shop.example/")
    gc.collect()
    assert [each() for each in found[:2]] == [None, None]


@pytest.mark.anyio
async def test_whom_the_machine_trusts_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connections("public"):
        pass
    monkeypatch.setattr(ssl, "create_default_context", pytest.fail)
    async with connections("public"):
        pass
