"""Start and end sessions, which are in the journal, and make links that sign in once."""

from __future__ import annotations

from tollkeeper.engine.journal.contract import JournalError
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.changes import (
    RecordedChange,
    SessionEnded,
    SessionStarted,
)
from tollkeeper.engine.registry.errors import Conflict
from tollkeeper.engine.registry.keys import hash_key
from tollkeeper.engine.registry.scopes import KeyScope
from tollkeeper.engine.registry.sessions import SignInGrant, begin_session, key_of_session
from tollkeeper.engine.registry.state import fold_change
from tollkeeper.engine.runtime import Engine


async def start_session(engine: Engine, sign_in: SignInGrant) -> tuple[str, SessionStarted] | None:
    """Start a session; returns the secret for the browser's cookie and the change. None when the
    user or key is gone."""
    async with engine.changing:
        now = engine.clock()
        if key_of_session(engine.state, sign_in, now) is None:
            return None
        secret, started = begin_session(sign_in, now, engine.journal.shard.number)
        author = sign_in.parent or sign_in.owner
        await _record(engine, sign_in.account, author, started)
    return secret, started


async def end_session(engine: Engine, presented: str) -> bool:
    """End a session by its secret; False when there is none."""
    async with engine.changing:
        hash_ = hash_key(presented)
        session = engine.state.sessions.get(hash_)
        if session is None:
            return False
        author = session.parent or session.owner
        await _record(engine, session.account, author, SessionEnded(hash_, session.owner))
    return True


async def _record(
    engine: Engine, account: int, by: str, change: SessionStarted | SessionEnded
) -> None:
    """Record a session's start or end. When the journal can't be written, it is kept in memory
    until the service stops, so that an operator can still sign in to repair the journal.
    """
    if engine.damage.policy != "read-only":
        try:
            await make_change(engine, account, by, change)
        except JournalError as error:
            get_logger().warning("session_not_kept", account=account, reason=str(error))
        else:
            return
    at, sequence = engine.clock(), engine.state.sequence
    engine.state = fold_change(engine.state, RecordedChange(sequence, at, account, by, change))


class MakeLink(AccountVerb, frozen=True):
    """Make a code that signs `owner` in once; it is the effect's `key`.

    Refused where no service runs: codes are kept in its memory.
    """

    owner: str
    scopes: tuple[KeyScope, ...]

    async def perform(self, engine: Engine, _author: str, _progress: Progress) -> Effect:
        number = self.number(engine)
        if not engine.ready.is_set():
            raise Conflict("service", "no service is ready on this data folder to sign in to")
        return Effect(
            key=engine.sessions.make_link(number, self.owner, self.scopes, engine.clock())
        )
