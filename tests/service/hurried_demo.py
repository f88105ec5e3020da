"""A demo whose payments come five times as fast: people watch the real one."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection

from tollkeeper.api.terminal import demo_service
from tollkeeper.cli import main
from tollkeeper.tests.service.forked_modules import fork_modules


def hurried_demo(printed: Connection) -> None:
    """Performs `toll demo`, which prints there."""
    os.dup2(printed.fileno(), 1)
    for pause in ("PAUSE_S", "ATTACK_DELAY_S", "ATTACK_PAUSE_S"):
        setattr(demo_service, pause, getattr(demo_service, pause) / 5)
    fork_modules()
    main(["demo", "--port", "0"])
