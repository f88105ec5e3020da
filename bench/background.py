"""Run something in the background of a measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def repeating(step: Callable[[], T], pause_s: float = 0) -> Iterator[list[T]]:
    """Repeat a step in a thread while the context lasts, with a pause before each.

    Yields the results so far; a step that has begun is completed.
    """
    results: list[T] = []
    ended = Event()

    def repeat() -> None:
        while not ended.wait(pause_s):
            results.append(step())

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield results
    finally:
        ended.set()
        thread.join()
