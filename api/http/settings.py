"""The operator's settings of a service; each is an option of `toll serve` and a variable `TOLL_…`."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from tollkeeper.engine.journal.damage import Policy
from tollkeeper.engine.journal.source import Database, JournalSource
from tollkeeper.engine.journal.writer import WAITING_LIMIT
from tollkeeper.engine.monitors.webhook_reach import Reach
from tollkeeper.engine.velocity.windows import CAP, TOTAL_CAP

BODY_BYTES = 256 * 1024
BODY_SECONDS = 15
HEAD_BYTES = 64 * 1024
_HOUR_S = 3600

BOUNDS: dict[str, tuple[int, int]] = {
    "port": (0, 65535),
    "admin_port": (0, 65535),
    "node_port": (0, 65535),
    "shards": (1, 64),
    "waiting": (1, 1_000_000),
    "connections": (1, 1_000_000),
    "heads_per_address": (1, 1_000_000),
    "idle_seconds": (1, _HOUR_S),
    "head_bytes": (1, 2**24),
    "body_bytes": (1, 2**26),
    "body_seconds": (1, _HOUR_S),
    "drain_seconds": (0, _HOUR_S),
    "key_reports": (1, 1_000_000),
    "account_reports": (1, 1_000_000),
    "key_work": (1, 1_000_000),
    "account_work": (1, 1_000_000),
    "account_changes": (1, 1_000_000),
    "address_sign_ins": (1, 1_000_000),
    "windows_cap": (1, 10**12),
    "windows_total_cap": (1, 10**12),
    "late_hours": (0, 24 * 366),
    "snapshot_minutes": (1, 24 * 60),
}
"""The bounds of each numeric setting."""


class StartError(Exception):
    """The service can't start; the message is for a person."""


class SettingsError(StartError):
    """Invalid settings; the message has one line for each."""


_LISTENER = re.compile(r"(.+):([0-9]{1,5})")
_UNSPECIFIED = ("0.0.0.0", "::")  # noqa: S104 - where one listens and nobody can be reached


class Settings(Struct, frozen=True, kw_only=True):
    """`waiting` is the most requests that may be decided but not yet on disk: more are refused
    (503) before any work is done.

    The journal is in `folder`, or in the PostgreSQL database with the address `database`; then the
    folder only holds what this machine derives from it.

    The public interface listens on `host` and `port` (0 takes a free one). Health and metrics are
    also on `admin_host` and `admin_port`, if set, with connections of their own.

    `connections` may be open at once. Past it, the one is closed that has waited longest for a
    request head, or for over a second for the rest of a body or the next request; if there is none,
    requests on new connections are refused (503). An address may have `heads_per_address`
    connections that wait for a head; past it, its slow ones are closed. A connection is closed if no
    complete head arrives for `idle_seconds`; a head has at most `head_bytes` (431). A JSON body has
    at most `body_bytes` (413), and any body `body_seconds` to arrive (408); a client that reads none
    of its answers for as long is disconnected. Once the service is to stop, it gives requests in
    flight `drain_seconds`.

    A key may send `key_reports` payments and events a second, and all keys of an account
    `account_reports`; of other requests `key_work` and `account_work`, of which `account_changes`
    may change the configuration (429). From one address, people may try to sign in
    `address_sign_ins` times a minute (429).

    `windows_cap` is the most elements of an account's windows before the largest window is dropped,
    `windows_total_cap` that of all accounts before the account with the most drops its largest;
    windows count payments that arrive up to `late_hours` after their time. Every `snapshot_minutes`
    the windows are written to a file, from which a start continues.

    `reach` says which addresses webhooks may have: `public` ones over https only, or `any`.
    `damage` says what to do about entries that can't be read; `require_data` refuses a folder
    without a journal instead of starting one. `console` is `on` for pages at `/console`, `off` for
    none, or `HOST:PORT` for pages on a listener of their own. `telemetry` is the address of a
    collector of OTLP over HTTP, which is sent traces and metrics. `openid` is a file with the
    providers that sign people in by OpenID Connect (docs/console.md).

    With a database, several nodes share the journal: a node listens to the others on `node_host`
    and `node_port` (0 takes a free one); `node_address` (`HOST:PORT`) is where they reach it, if
    different. The folder `node_tls` holds the certificates by which nodes know each other. `shards`
    is the number of journals that the accounts are divided among, each with an owner among the
    nodes; it is fixed when the database is first served.

    Raises `SettingsError`.
    """

    folder: Path = Path("data")
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    admin_host: str = "127.0.0.1"
    admin_port: int | None = None
    waiting: int = WAITING_LIMIT
    connections: int = 2048
    heads_per_address: int = 256
    idle_seconds: int = 30
    head_bytes: int = HEAD_BYTES
    body_bytes: int = BODY_BYTES
    body_seconds: int = BODY_SECONDS
    drain_seconds: int = 30
    key_reports: int = 5_000
    account_reports: int = 10_000
    key_work: int = 50
    account_work: int = 100
    account_changes: int = 10
    address_sign_ins: int = 60
    windows_cap: int = CAP
    windows_total_cap: int = TOTAL_CAP
    late_hours: int = 24
    snapshot_minutes: int = 10
    reach: Reach = "public"
    damage: Policy = "stop"
    require_data: bool = False
    console: str = "on"
    telemetry: str | None = None
    openid: Path | None = None
    node_host: str = "127.0.0.1"
    node_port: int = 0
    node_address: str | None = None
    node_tls: Path | None = None
    shards: int | None = None

    @property
    def source(self) -> JournalSource:
        """Where the journal is."""
        return self.folder if self.database is None else Database(self.database, self.folder)

    def __post_init__(self) -> None:
        wrong = [
            f"{name.replace('_', '-')}: {value} is not between {least} and {most}"
            for name, (least, most) in BOUNDS.items()
            if (value := getattr(self, name)) is not None and not least <= value <= most
        ]
        if self.admin_port and (self.admin_host, self.admin_port) == (self.host, self.port):
            wrong.append(f"admin-port: {self.admin_port} is the public interface's port")
        if self.console not in ("on", "off") and self.console_listener() is None:
            wrong.append(f"console: {self.console} is not `on`, `off` or HOST:PORT")
        if self.database and self.node_address is None and self.node_host in _UNSPECIFIED:
            wrong.append(f"node-address: where other nodes reach {self.node_host} is needed")
        if self.shards not in (None, 1) and self.database is None:
            wrong.append("shards: a data folder has one journal; several are in a database")
        if self.node_address is not None and not _LISTENER.fullmatch(self.node_address):
            wrong.append(f"node-address: {self.node_address} is not HOST:PORT")
        if self.telemetry is not None and not self.telemetry.startswith(("http://", "https://")):
            wrong.append(f"telemetry: {self.telemetry} is no address of http or https")
        if wrong:
            raise SettingsError("\n".join(wrong))

    def admin_listener(self) -> tuple[str, int] | None:
        """The host and port of the operator's own listener; None if there is none."""
        return None if self.admin_port is None else (self.admin_host, self.admin_port)

    def console_listener(self) -> tuple[str, int] | None:
        """The host and port of the console's own listener; None if it has none."""
        found = _LISTENER.fullmatch(self.console)
        if found is None or int(found[2]) > BOUNDS["port"][1]:
            return None
        return found[1].strip("[]"), int(found[2])
