"""A PostgreSQL pair of its own on two machines: a primary, and a standby that each commit waits
for.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import chown, rmtree, which
from signal import SIGQUIT

import psycopg

from tollkeeper.bench.faults.network import inside, run

_PATIENCE_S = 40
PORT = 5432
_SETTINGS = """
listen_addresses = '*'
unix_socket_directories = ''
synchronous_standby_names = '*'
max_connections = 120
shared_buffers = 32MB
wal_sender_timeout = 4s
wal_receiver_timeout = 4s
wal_retrieve_retry_interval = 500ms
hot_standby_feedback = on
checkpoint_timeout = 1h
min_wal_size = 8MB
max_wal_size = 96MB
wal_keep_size = 128MB
"""
_DISK = "512m"
_SEGMENT_MB = 4
_SEGMENTS = 200
"""More than fits on a full disk."""
AS_POSTGRES = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")


def missing() -> str | None:
    """Return why no server can be started here; None if one can."""
    if which("pg_config") is None and _found_binaries() is None:
        return "there are no binaries of PostgreSQL"
    if subprocess.run(["id", "postgres"], capture_output=True).returncode:
        return "there is no user `postgres`, and the server does not run as root"
    return None


def _found_binaries() -> Path | None:
    """Return the newest version's folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Pair:
    """Two servers; `primary` and `standby` are the machines on which they run at the moment."""

    def __init__(self, folder: Path, machines: tuple[str, str], addresses: dict[str, str]) -> None:
        self.primary, self.standby = machines
        self._addresses = addresses
        self._folder = folder
        self._binaries = _found_binaries() or Path(run("pg_config", "--bindir").strip())
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        hosts = ",".join(f"{addresses[each]}:{PORT}" for each in machines)
        self.url = f"postgresql://postgres@{hosts}/toll?target_session_attrs=read-write"

    def begin(self) -> None:
        """Set both up, with an empty database `toll`."""
        self.make_disks()
        data = self._data(self.primary)
        made = ("-D", data, "-U", "postgres", "--auth=trust", "--no-sync")
        self._do(self.primary, "initdb", *made, f"--wal-segsize={_SEGMENT_MB}")
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS)
        with (data / "pg_hba.conf").open("a") as hosts:
            hosts.write(
                "host all all 10.77.0.0/16 trust\nhost replication all 10.77.0.0/16 trust\n"
            )
        self.start(self.primary)
        self.copy()
        with self.connected(database="postgres") as connection:
            connection.execute("CREATE DATABASE toll")

    def start(self, machine: str) -> None:
        """Start a machine's server, and wait until it answers."""
        command = (*AS_POSTGRES, self._binaries / "postgres", "-D", self._data(machine))
        with self._log(machine).open("ab") as log:
            self._servers[machine] = subprocess.Popen(
                inside(machine, *command), stdout=log, stderr=log
            )
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                with self._to(machine, "postgres"):
                    return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._servers[machine].poll() is not None:
                    raise OSError(self._log(machine).read_text()[-2000:]) from None
            time.sleep(0.1)

    def crash(self, machine: str) -> None:
        """End a server as if its machine had lost power, except that what it had passed to the
        kernel is kept.
        """
        server = self._servers.pop(machine)
        server.send_signal(SIGQUIT)
        server.wait(_PATIENCE_S)

    def copy(self) -> None:
        """Make the standby again from the primary."""
        data = self._data(self.standby)
        rmtree(data, ignore_errors=True)
        origin = ("-h", self._addresses[self.primary], "-p", str(PORT), "-U", "postgres")
        options = ("-D", data, "-R", "--checkpoint=fast", "--no-sync")
        self._do(self.standby, "pg_basebackup", *origin, *options)
        self.start(self.standby)

    def fill(self) -> None:
        """Fill the primary's disk."""
        with suppress(OSError), self._ballast.open("wb", 0) as file:
            while True:
                file.write(bytes(1 << 20))
        with suppress(OSError), self._ballast.open("ab", 0) as file:
            while True:
                file.write(bytes(4096))

    def exhaust_log(self) -> None:
        """End the primary on a full disk, without room for its write-ahead log."""
        with suppress(psycopg.Error), self.connected() as connection:
            for _ in range(_SEGMENTS):
                connection.execute("SELECT txid_current(), pg_switch_wal()")

    def empty(self) -> None:
        """Free the space, and restart the primary if it ended for lack of it."""
        self._ballast.unlink()
        if self._servers[self.primary].poll() is not None:
            self.start(self.primary)

    def promote(self) -> None:
        """Make the standby the primary; the other machine then has no server."""
        with self._to(self.standby, "postgres") as connection:
            connection.execute("SELECT pg_promote()")
        self.primary, self.standby = self.standby, self.primary

    @contextmanager
    def connected(self, database: str = "toll") -> Iterator[psycopg.Connection[tuple[object, ...]]]:
        """A connection to the primary."""
        with self._to(self.primary, database) as connection:
            yield connection

    def end(self) -> None:
        for server in self._servers.values():
            with suppress(ProcessLookupError):
                server.send_signal(SIGQUIT)
        for server in self._servers.values():
            server.wait(_PATIENCE_S)
        self.remove_disks()

    def make_disks(self) -> None:
        """Make a disk for each server."""
        self._folder.mkdir()
        chown(self._folder, "postgres", "postgres")
        for machine in (self.primary, self.standby):
            disk = self._folder / machine
            disk.mkdir()
            run("mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", disk)
            chown(disk, "postgres", "postgres")

    def remove_disks(self) -> None:
        """Remove the disks."""
        for machine in (self.primary, self.standby):
            run("umount", "--lazy", self._folder / machine)

    def _to(self, machine: str, database: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host=self._addresses[machine],
            port=PORT,
            user="postgres",
            dbname=database,
            connect_timeout=5,
            autocommit=True,
        )

    @property
    def _ballast(self) -> Path:
        return self._folder / self.primary / "ballast"

    def _data(self, machine: str) -> Path:
        return self._folder / machine / "data"

    def _log(self, machine: str) -> Path:
        return self._folder / f"{machine}.log"

    def _do(self, machine: str, program: str, *arguments: str | Path) -> None:
        run(*inside(machine, *AS_POSTGRES, self._binaries / program, *arguments))
