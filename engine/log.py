"""The service's log, for modules that commands load as well."""

from __future__ import annotations

from typing import Any


def get_logger() -> Any:
    """The logger of structlog, which is loaded with the first line: commands hardly ever write one."""
    import structlog

    return structlog.get_logger()
