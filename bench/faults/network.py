"""Machines of a network: one namespace each, joined by a router that can drop traffic between them.

Everything ends with the process that made it, if that runs in namespaces of its own (`alone`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which

ROUTER = "10.77.1.1"
"""The address of the router for every machine."""
_INSIDE = "TOLL_CHAOS_INSIDE"
_TOOLS = ("unshare", "ip", "tc", "setpriv", "mount")
_OWN = ("--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")
# `burst` is one packet; packets that wait longer are dropped.
_SLOW = ("tbf", "rate", "400kbit", "burst", "4kb", "latency", "30ms")


def missing() -> str | None:
    """Return why no such network can be made here; None if it can."""
    if os.geteuid() != 0:
        return "it takes root"
    if lacking := [each for each in _TOOLS if which(each) is None]:
        return f"there is no `{'`, no `'.join(lacking)}`"
    if subprocess.run(["unshare", *_OWN, "true"], capture_output=True).returncode:
        return "namespaces are not permitted here"
    return None


def run_in_namespaces(arguments: Sequence[str]) -> int | None:
    """Run this command again in namespaces of its own and return its exit code; None if it already
    runs in them.
    """
    if _INSIDE in os.environ:
        return None
    command = ["unshare", *_OWN, sys.executable, *arguments]
    with subprocess.Popen(command, env={**os.environ, _INSIDE: "1"}) as process:
        # Ending this process ends everything in the namespaces.
        signal.signal(signal.SIGTERM, lambda *_: process.kill())
        return process.wait()


def run(*command: str | Path) -> str:
    """Return a command's output; raises with its error output if it fails."""
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"`{' '.join(str(each) for each in command)}` failed: {done.stderr.strip()}")
    return done.stdout


def inside(machine: str, *command: str | Path) -> list[str]:
    """Return a command that runs on a machine."""
    return ["ip", "netns", "exec", machine, *(str(each) for each in command)]


@contextmanager
def network(machines: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the address of each machine; this process is on the router."""
    run("ip", "link", "set", "lo", "up")
    Path("/run/netns").mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    addresses = {}
    for number, machine in enumerate(machines, start=1):
        wire, address, router = f"to-{machine}", f"10.77.{number}.2", f"10.77.{number}.1"
        run("ip", "netns", "add", machine)
        run("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", machine)
        run("ip", "address", "add", f"{router}/24", "dev", wire)
        run("ip", "link", "set", wire, "up")
        for words in (
            ("address", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", router),
        ):
            run(*inside(machine, "ip", *words))
        addresses[machine] = address
    yield addresses


@contextmanager
def lost(origin: str, target: str) -> Iterator[None]:
    """Drop everything that one address sends to the other while the context lasts."""
    words = ("from", origin, "to", target, "blackhole")
    run("ip", "rule", "add", *words)
    try:
        yield
    finally:
        run("ip", "rule", "del", *words)


@contextmanager
def disconnect(one: str, others: Sequence[str]) -> Iterator[None]:
    """Drop everything between an address and the others while the context lasts."""
    with ExitStack() as stack:
        for other in others:
            stack.enter_context(lost(one, other))
            stack.enter_context(lost(other, one))
        yield


@contextmanager
def slow(machine: str) -> Iterator[None]:
    """Limit a machine's link to 50 KB a second while the context lasts; what waits too long is
    dropped.
    """
    ends = (("tc",), inside(machine, "tc"))
    links = (f"to-{machine}", "eth0")
    for tc, link in zip(ends, links, strict=True):
        run(*tc, "qdisc", "add", "dev", link, "root", *_SLOW)
    try:
        yield
    finally:
        for tc, link in zip(ends, links, strict=True):
            run(*tc, "qdisc", "del", "dev", link, "root")
