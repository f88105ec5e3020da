"""The scorecard that ships with a release, as each account's journal keeps it.

A release that ships another one than the journal knows says so there when it opens the account, so
that a decision is explained by the text that made it, whatever later releases ship.
"""

from __future__ import annotations

from importlib.metadata import version

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.programs.active import SCORECARD_NAME
from tollkeeper.engine.programs.load import shipped_program, shipped_text
from tollkeeper.engine.registry.changes import ScorecardShipped
from tollkeeper.engine.registry.programs import LANGUAGE_VERSION, encode_program
from tollkeeper.engine.registry.versions import file_checksum
from tollkeeper.engine.runtime import Engine


async def take_up_shipped(engine: Engine, account: int) -> None:
    """Keep what decides from now on where the account has no scorecard of its own.

    A test account has it from its live one. To be called under `engine.changing`. Raises
    `JournalError`.
    """
    if engine.state.accounts[account].live is not None:
        return
    text = shipped_text()
    known, sum_ = engine.state.accounts[account].shipped, file_checksum(text, {})
    if known is None or known.checksum != sum_:
        change = ScorecardShipped(
            name=SCORECARD_NAME,
            text=text,
            checksum=sum_,
            language=LANGUAGE_VERSION,
            program=encode_program(shipped_program()),
        )
        await make_change(engine, account, f"tollkeeper {version('tollkeeper')}", change)
