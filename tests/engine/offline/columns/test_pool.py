"""The processes that count windows, and their end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

ASK = """
import os, time
from tollkeeper.engine.offline.columns.pool import open_pool
with open_pool(1) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


def test_they_end_with_the_process_that_is_killed_while_they_wait_for_work() -> None:
    asking = subprocess.Popen([sys.executable, "-c", ASK], stdout=subprocess.PIPE)
    assert asking.stdout is not None
    process = int(asking.stdout.readline())
    asking.kill()
    asking.communicate()
    with suppress(ProcessLookupError):
        while True:
            os.kill(process, 0)
            time.sleep(0.02)
