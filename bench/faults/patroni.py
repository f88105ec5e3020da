"""A pair of databases managed by Patroni, which promotes the standby itself, based on etcd.

The faults here are in its servers and their connections; Patroni decides which is the primary.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which
from signal import SIGKILL
from typing import Any

import httpx
import psycopg

from tollkeeper.bench.faults import faults
from tollkeeper.bench.faults.database import AS_POSTGRES, PORT, Pair
from tollkeeper.bench.faults.faults import Fault, Site
from tollkeeper.bench.faults.network import disconnect, inside, run
from tollkeeper.bench.servers import children

COORDINATOR = "coordinator"
"""The machine with etcd."""
_ETCD, _REST = 2379, 8008
_PATIENCE_S = 120.0
_TIMES = {"ttl": 20, "loop_wait": 2, "retry_timeout": 5}
"""In seconds; Patroni accepts no shorter `ttl`."""
_PARAMETERS = {"max_connections": 120, "shared_buffers": "32MB", "wal_keep_size": "64MB"}
# Patroni's processes end with it; `init` reaps orphans.
_OWN = ("unshare", "--pid", "--fork", "--mount-proc")
_HBA = ("host all all 10.77.0.0/16 trust", "host replication all 10.77.0.0/16 trust")


def missing(command: Path) -> str | None:
    """Return why no pair can be made; None if one can."""
    if which(command) is None:
        return f"`{command}` is not there: pip install 'patroni[etcd3]' psycopg-binary"
    return None if which("etcd") else "there is no `etcd`"


class ManagedPair(Pair):
    """`command` is Patroni's."""

    def __init__(
        self,
        folder: Path,
        machines: tuple[str, str],
        addresses: dict[str, str],
        command: Path,
    ) -> None:
        super().__init__(folder, machines, addresses)
        self._command = command
        self._etcd: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        self.make_disks()
        client = f"http://{self._addresses[COORDINATOR]}:{_ETCD}"
        where = ("--data-dir", self._folder / "etcd", "--log-level", "error")
        urls = ("--listen-client-urls", client, "--advertise-client-urls", client)
        with self._log(COORDINATOR).open("ab") as log:
            self._etcd = subprocess.Popen(
                inside(COORDINATOR, "etcd", *where, *urls), stdout=log, stderr=log
            )
        for machine in (self.primary, self.standby):
            self.start(machine)
        self.await_standby()
        with self.connected(database="postgres") as connection:
            connection.execute("CREATE DATABASE toll")

    def start(self, machine: str) -> None:
        """Start Patroni, which then starts the server."""
        settings = self._folder / f"{machine}.json"
        settings.write_text(json.dumps(self._settings(machine)))
        command = (*_OWN, *AS_POSTGRES, self._command, settings)
        with self._log(machine).open("ab") as log:
            self._servers[machine] = subprocess.Popen(
                inside(machine, *command), stdout=log, stderr=log
            )

    def crash(self, machine: str) -> None:
        """End Patroni and its server as if the machine had lost power."""
        os.kill(self._first(machine), SIGKILL)
        self._servers.pop(machine).wait()

    def quit(self, machine: str) -> None:
        """End a server at once; Patroni does the rest."""
        server = (self._data(machine) / "postmaster.pid").read_text().split()[0]
        own = ("nsenter", "--target", str(self._first(machine)), "--pid", "--mount")
        run(*own, "kill", "-QUIT", server)

    def _first(self, machine: str) -> int:
        """Return the process with which all others of a machine end."""
        (first,) = children(self._servers[machine].pid)
        return first

    def find(self) -> None:
        """Wait for a primary, and record which machine it is on."""
        self._until(self._has_primary)

    def await_other(self, former: str) -> None:
        """Wait until the other machine is the primary."""
        self._until(lambda: self._has_primary() and self.primary != former)

    def await_standby(self) -> None:
        """Wait until commits wait for the standby again."""
        self._until(lambda: self._has_primary() and self._state(self.standby).get("sync_standby"))

    def switch(self) -> None:
        """Have Patroni switch primary and standby in an orderly way."""
        request = {"leader": self.primary, "candidate": self.standby}
        with suppress(httpx.TransportError):
            httpx.post(f"{self._rest(self.primary)}/switchover", json=request, timeout=60)

    @contextmanager
    def connected(self, database: str = "toll") -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        self.find()
        with super().connected(database) as connection:
            yield connection

    def end(self) -> None:
        for machine in list(self._servers):
            self.crash(machine)
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd.wait()
        self.remove_disks()

    def _has_primary(self) -> bool:
        for machine in (self.primary, self.standby):
            if self._state(machine).get("role") in ("primary", "master"):
                if machine != self.primary:
                    self.primary, self.standby = self.standby, self.primary
                return self._state(machine).get("state") == "running"
        return False

    def _state(self, machine: str) -> dict[str, Any]:
        """Return Patroni's status of its server; empty if it doesn't answer."""
        with suppress(httpx.TransportError, ValueError):
            status: dict[str, Any] = httpx.get(f"{self._rest(machine)}/patroni", timeout=2).json()
            return status
        return {}

    def _until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                logs = [self._log(each).read_text()[-1500:] for each in self._servers]
                raise OSError("\n".join(logs))
            time.sleep(0.2)

    def _rest(self, machine: str) -> str:
        return f"http://{self._addresses[machine]}:{_REST}"

    def _settings(self, machine: str) -> dict[str, Any]:
        address = self._addresses[machine]
        server = {"use_pg_rewind": True, "parameters": _PARAMETERS}
        shared = {**_TIMES, "synchronous_mode": True, "postgresql": server}
        users = {"superuser": {"username": "postgres"}, "replication": {"username": "replicator"}}
        return {
            "scope": "toll",
            "name": machine,
            "etcd3": {"host": f"{self._addresses[COORDINATOR]}:{_ETCD}"},
            "restapi": {"listen": f"{address}:{_REST}", "connect_address": f"{address}:{_REST}"},
            "bootstrap": {"dcs": shared, "initdb": ["data-checksums", {"encoding": "UTF8"}]},
            "postgresql": {
                "listen": f"{address}:{PORT}",
                "connect_address": f"{address}:{PORT}",
                "data_dir": str(self._data(machine)),
                "bin_dir": str(self._binaries),
                "pgpass": str(self._folder / f"{machine}.pgpass"),
                "authentication": users,
                "pg_hba": _HBA,
                "parameters": {"unix_socket_directories": ""},
                "remove_data_directory_on_diverged_timelines": True,
                "remove_data_directory_on_rewind_failure": True,
            },
        }


def managed(site: Site) -> ManagedPair:
    """Return the site's pair: the faults here are of those that Patroni manages."""
    assert isinstance(site.pair, ManagedPair)
    return site.pair


def lost_machine(site: Site) -> Iterator[None]:
    pair = managed(site)
    former = pair.primary
    pair.crash(former)
    pair.await_other(former)
    yield
    pair.start(former)
    pair.await_standby()


def crashed_server(site: Site) -> Iterator[None]:
    """Patroni restarts it, or promotes the other."""
    pair = managed(site)
    pair.quit(pair.primary)
    yield
    pair.await_standby()


def primary_that_etcd_does_not_hear(site: Site) -> Iterator[None]:
    """It continues for a while, since nodes reach it, until it steps down itself."""
    pair = managed(site)
    former = pair.primary
    with disconnect(site.addresses[former], [site.addresses[COORDINATOR], site.databases()[1]]):
        pair.await_other(former)
    yield
    pair.await_standby()


def lost_standby(site: Site) -> Iterator[None]:
    """Commits wait for nobody once Patroni has recorded that the standby must not be promoted."""
    pair = managed(site)
    standby = pair.standby
    pair.crash(standby)
    yield
    pair.start(standby)
    pair.await_standby()


def switchover(site: Site) -> Iterator[None]:
    pair = managed(site)
    former = pair.primary
    pair.switch()
    pair.await_other(former)
    yield
    pair.await_standby()


FAULTS: tuple[Fault, ...] = (
    lost_machine,
    faults.killed,
    primary_that_etcd_does_not_hear,
    faults.paused_beyond_the_lease,
    switchover,
    crashed_server,
    lost_standby,
    faults.terminated_backends,
)
