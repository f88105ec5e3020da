"""A rule author's folder, as the tests of `test` blocks have it."""

from __future__ import annotations

from tollkeeper.tests.engine.offline.testing.conftest import write

__all__ = ["write"]
