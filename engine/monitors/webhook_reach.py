"""Which addresses a webhook may reach: checked when it is set, and again at every connection.

The connection goes to the IP address that was checked, so changing what a name resolves to between
check and connection (DNS rebinding) does not help.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from socket import SOCK_STREAM, gaierror, inet_aton, inet_ntoa
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import httpcore

from tollkeeper.engine.intake.addresses import address_number, carried_ipv4, is_private
from tollkeeper.engine.registry.errors import Invalid

Reach: TypeAlias = Literal["public", "any"]
"""`public`: https to public addresses alone. `any`: http and private addresses too."""

resolving_for: ContextVar[int | None] = ContextVar("resolving_for", default=None)
"""The account whose webhook a connection is for; a pool tells its backend only host and port."""

_MOST_RESOLVED = 256
"""The most names that are resolved at once."""
_MOST_OF_ACCOUNT = 10
"""The same for one account."""
_NAME = re.compile(r"(?![0-9.]+$)[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")


def check_reach(url: str, reach: Reach) -> None:
    """Raise `Invalid` for a well-formed URL that a webhook may not have."""
    if reach == "any":
        return
    parts = urlsplit(url)
    if parts.scheme != "https":
        raise Invalid.at("webhook.url", "invalid_format", "an address starts with `https://`")
    host = (parts.hostname or "").removesuffix(".")
    address = _written_address(host)
    if address is None and not _NAME.fullmatch(host):
        message = "an address names a host, or has its address in the usual form"
        raise Invalid.at("webhook.url", "invalid_format", message)
    local = host == "localhost" or host.endswith(".localhost")
    if local or (address is not None and not _is_public(address)):
        raise Invalid.at("webhook.url", "private_address", "an address must not be a private one")


def _written_address(host: str) -> str | None:
    """The IP address that a host is written as, in any notation that resolvers accept: `127.1`,
    `0`."""
    if ":" in host:
        return host if address_number(host) is not None else None
    try:
        return inet_ntoa(inet_aton(host))
    except OSError:
        return None


def _is_public(text: str) -> bool:
    """Whether an address, and the IPv4 address that it may embed, is a public one."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    number = address_number(str(address))
    if number is not None and (carried := carried_ipv4(number)):
        address = IPv4Address(carried & 0xFFFF_FFFF)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return (
        number is not None
        and not is_private(number)
        and address.is_global
        and not address.is_multicast
        and not (isinstance(address, IPv6Address) and address.is_site_local)
    )


def connections(reach: Reach) -> httpcore.AsyncConnectionPool:
    """A connection pool limited to these addresses, without redirects and proxies."""
    return httpcore.AsyncConnectionPool(
        ssl_context=_trusted(),
        network_backend=_GuardedBackend(reach),
        max_connections=None,
        keepalive_expiry=30.0,
    )


@cache
def _trusted() -> ssl.SSLContext:
    """TLS settings with the authorities that the machine trusts; read once, as that takes 17 ms of the
    event loop's time."""
    return ssl.create_default_context()


class _Resolvers:
    """Threads that only resolve names: the owner of a name decides how long resolving it occupies a
    thread, and other work must not wait for that.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_MOST_RESOLVED, thread_name_prefix="resolver")
        self._busy_for: dict[int | None, list[Future[Any]]] = {}

    def begin(self, account: int | None, look_up: Callable[[], Any]) -> Future[Any]:
        """Look a name up in a thread, which may be busy with it long after its caller has given up.
        Raises `ConnectError` if too many threads are busy for the account.
        """
        busy = (
            (number, [each for each in look_ups if not each.done()])
            for number, look_ups in self._busy_for.items()
        )
        self._busy_for = {number: look_ups for number, look_ups in busy if look_ups}
        if len(self._busy_for.get(account, ())) >= _MOST_OF_ACCOUNT:
            message = "too many names of the account's webhooks are being resolved"
            raise httpcore.ConnectError(message)
        begun = self._threads.submit(look_up)
        self._busy_for.setdefault(account, []).append(begun)
        return begun


@cache
def _resolvers() -> _Resolvers:
    """The process's resolvers: all connections share the limits."""
    return _Resolvers()


class _GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to no address but those within reach."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        look_up = partial(socket.getaddrinfo, host, port, type=SOCK_STREAM)
        resolving = _resolvers().begin(resolving_for.get(), look_up)
        try:
            async with asyncio.timeout(timeout):
                resolved = await asyncio.wrap_future(resolving)
        except (gaierror, UnicodeError):
            raise httpcore.ConnectError("the name of the host is not known") from None
        except TimeoutError:
            raise httpcore.ConnectTimeout("the name of the host was not resolved in time") from None
        addresses = [str(each[4][0]) for each in resolved]
        if self._reach == "public" and not all(map(_is_public, addresses)):
            raise httpcore.ConnectError("the host has a private address")
        return await self._backend.connect_tcp(
            addresses[0], port, timeout, local_address, socket_options
        )

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)
