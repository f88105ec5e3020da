"""What an operator may set of a service; each is an option and a `TOLL_…` of `toll serve`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tollkeeper.engine.events.reach import Reach
from tollkeeper.engine.journal.sqlite import WAITING_LIMIT
from tollkeeper.engine.windows.memory import CAP


class Settings(Struct, frozen=True, kw_only=True):
    """`waiting` requests may be decided and not yet on disk: more are refused (503) before any work.

    `connections` may be open at once: the requests of more are refused (503). A connection is
    closed when for `idle_seconds` no whole request head has arrived on it. Once told to stop, the
    service gives requests in flight `drain_seconds`. `windows_cap` is how many elements an
    account's windows may hold before the largest is given up. `reach` is which addresses webhooks may have: `public`
    ones over https alone, or `any`.
    """

    folder: Path = Path("data")
    host: str = "127.0.0.1"
    port: int = 8000
    waiting: int = WAITING_LIMIT
    connections: int = 2048
    idle_seconds: int = 30
    drain_seconds: int = 30
    windows_cap: int = CAP
    reach: Reach = "public"
