"""What an operator may set of a service; each is an option and a `TOLL_…` of `toll serve`."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tollkeeper.engine.journal.sqlite import WAITING_LIMIT
from tollkeeper.engine.monitors.webhook_reach import Reach
from tollkeeper.engine.velocity.memory import CAP

BODY_BYTES = 256 * 1024
BODY_SECONDS = 15
HEAD_BYTES = 64 * 1024


class Settings(Struct, frozen=True, kw_only=True):
    """`waiting` requests may be decided and not yet on disk: more are refused (503) before any work.

    `connections` may be open at once: the requests of more are refused (503). A connection is
    closed when for `idle_seconds` no whole request head has arrived on it; a head has at most
    `head_bytes`, give or take what arrives at once (431). A JSON body has at most `body_bytes`
    (413), any body `body_seconds` to arrive (408). Once told to stop, the service gives requests
    in flight `drain_seconds`. `windows_cap` is how many elements an account's windows may hold
    before the largest is given up; they count payments that arrive up to `late_hours` after their
    time. `reach` is which addresses webhooks may have: `public` ones
    over https alone, or `any`.
    """

    folder: Path = Path("data")
    host: str = "127.0.0.1"
    port: int = 8000
    waiting: int = WAITING_LIMIT
    connections: int = 2048
    idle_seconds: int = 30
    head_bytes: int = HEAD_BYTES
    body_bytes: int = BODY_BYTES
    body_seconds: int = BODY_SECONDS
    drain_seconds: int = 30
    windows_cap: int = CAP
    late_hours: int = 24
    reach: Reach = "public"
