from __future__ import annotations

from tollkeeper.tests.engine.offline.prove.forked import forked_solver

__all__ = ["forked_solver"]
