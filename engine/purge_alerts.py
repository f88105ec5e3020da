"""Remove old alerts, and monitors' states that no longer matter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import islice

from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.states import MonitorKey
from tollkeeper.engine.runtime import Engine

_STATES_AT_ONCE = 500
"""How many states are removed from the outbox in one step: a few milliseconds."""


async def purge_alerts(engine: Engine, account: int, before: int) -> None:
    """Remove alerts with event times before `before` (µs) and their deliveries. Raises
    `Unavailable`."""
    step = partial(outbox.purge_alerts_step, account=account, before=before)
    while await engine.outbox.write(step):
        pass


async def purge_states(engine: Engine, account: int) -> None:
    """Forget monitors' states that mean the same as having none. Raises `Unavailable`."""
    cool_downs: defaultdict[tuple[str, str], int] = defaultdict(int)
    for (name, _), type_ in engine.active[account].events.items():
        for monitor in type_.monitors:
            named = name, monitor.program.name
            cool_downs[named] = max(cool_downs[named], monitor.program.every or 0)
    # A late record is evaluated at its own event time.
    now, states = engine.clock() - engine.windows.late, engine.monitors.states
    unneeded = iter(list(states.without_meaning(account, cool_downs, now)))
    while some := list(islice(unneeded, _STATES_AT_ONCE)):
        # A key that was alerted while others were removed has a new state.
        keys = [key for key, state in some if states.of(key) is state]
        states.forget(keys)
        await forget_in_outbox(engine, keys)


async def forget_in_outbox(engine: Engine, keys: Sequence[MonitorKey]) -> None:
    """Remove the stored states for these keys. Raises `Unavailable`."""
    for start in range(0, len(keys), _STATES_AT_ONCE):
        some = keys[start : start + _STATES_AT_ONCE]
        await engine.outbox.write(partial(outbox.forget_monitor_states, gone=some))
