"""Record the shipped scorecard in each account's journal.

When a release ships another scorecard than the journal holds, its text is recorded at the next
start. So a decision is explained by the text that made it, whatever later releases ship.
"""

from __future__ import annotations

from functools import cache

from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.programs.active import SCORECARD_NAME
from tollkeeper.engine.programs.load import shipped_program, shipped_text
from tollkeeper.engine.registry.changes import ScorecardShipped
from tollkeeper.engine.registry.programs import LANGUAGE_VERSION, encode_program
from tollkeeper.engine.registry.versions import file_checksum
from tollkeeper.engine.release import this_release
from tollkeeper.engine.runtime import Engine


async def take_up_shipped(engine: Engine, account: int) -> None:
    """Record the shipped scorecard, unless the account's journal holds this one already.

    A test account uses its live account's. The caller holds `engine.changing`. Raises
    `JournalError`.
    """
    if engine.state.accounts[account].live is not None:
        return
    text = shipped_text()
    known = engine.state.accounts[account].shipped
    if known is None or known.checksum != file_checksum(text, {}):
        await make_change(engine, account, f"tollkeeper {this_release()}", _shipped(text))


@cache
def _shipped(text: str) -> ScorecardShipped:
    """The shipped scorecard, whose text this is, as every account's journal records it."""
    return ScorecardShipped(
        name=SCORECARD_NAME,
        text=text,
        checksum=file_checksum(text, {}),
        language=LANGUAGE_VERSION,
        program=encode_program(shipped_program()),
    )
