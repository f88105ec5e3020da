"""Loaded before all else: while modules load, there is no garbage to look for."""

from __future__ import annotations

import gc

gc.disable()
