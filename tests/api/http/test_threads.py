import sys
from collections.abc import Iterator
from threading import Event

import pytest

from tollkeeper.api.http.threads import ALONE_S, BESIDE_WORK_S, YieldingThreads


@pytest.fixture
def threads() -> Iterator[YieldingThreads]:
    before = sys.getswitchinterval()
    with YieldingThreads() as threads:
        yield threads
    sys.setswitchinterval(before)


def test_the_interpreter_changes_hands_soonest_while_any_thread_works(
    threads: YieldingThreads,
) -> None:
    assert sys.getswitchinterval() == pytest.approx(ALONE_S)
    end_first, end_second = Event(), Event()
    first, second = threads.submit(end_first.wait), threads.submit(end_second.wait)
    assert sys.getswitchinterval() == pytest.approx(BESIDE_WORK_S)
    end_first.set()
    first.result()
    assert sys.getswitchinterval() == pytest.approx(BESIDE_WORK_S)
    end_second.set()
    second.result()
    threads.shutdown()
    assert sys.getswitchinterval() == pytest.approx(ALONE_S)


def test_work_that_fails_ends_the_short_turns_too(threads: YieldingThreads) -> None:
    failing = threads.submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        failing.result()
    threads.shutdown()
    assert sys.getswitchinterval() == pytest.approx(ALONE_S)
