"""The questions that the index's process is answering, which the thread that follows waits for.

Only one thread of a process runs Python at a time: while both want to, a question takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from time import monotonic


class OpenQuestions:
    """Counts the questions that were asked and are not yet answered."""

    def __init__(self) -> None:
        self._none_left = Condition()
        self._open = 0

    def begin(self) -> None:
        with self._none_left:
            self._open += 1

    def end(self) -> None:
        with self._none_left:
            self._open -= 1
            if not self._open:
                self._none_left.notify_all()

    def are_there(self) -> bool:
        return self._open > 0

    def wait(self, most_s: float) -> None:
        """Return when there is none, or after `most_s` seconds."""
        with self._none_left:
            self._none_left.wait_for(lambda: not self._open, most_s)


def giving_way(questions: OpenQuestions, most_s: float) -> Callable[[], None]:
    """Return what waits, wherever it is called, while there are questions: `most_s` seconds in all."""
    left = most_s

    def give_way() -> None:
        nonlocal left
        if left > 0 and questions.are_there():
            begun = monotonic()
            questions.wait(left)
            left -= monotonic() - begun

    return give_way
