"""A request that the editor cancels ends what works on it; pygls alone drops a command's answer and
lets it work on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lsprotocol import types as lsp
from pygls.protocol import LanguageServerProtocol


class CancellingProtocol(LanguageServerProtocol):
    """The protocol, with the tasks that work on requests."""

    def __init__(self, *arguments: Any) -> None:
        self._tasks: dict[str | int, asyncio.Task[Any]] = {}
        super().__init__(*arguments)

    def handle_message(self, message: Any) -> None:
        if getattr(message, "method", None) == lsp.CANCEL_REQUEST:
            task = self._tasks.get(message.params.id)
            if task is not None:
                task.cancel()
        super().handle_message(message)

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """Have the current task cancelled with the request that it works on."""
        request, task = self.msg_id, asyncio.current_task()
        if request is None or task is None:
            yield
            return
        self._tasks[request] = task
        try:
            yield
        finally:
            del self._tasks[request]
