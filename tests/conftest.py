"""What holds for every test: none depends on how fast the machine is, and none waits for a disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from shutil import disk_usage

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any_machine")

MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and disk_usage(MEMORY).free > 2 * 2**30:
    # Tests end processes, never the machine: nothing of theirs has to outlive it.
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None
