"""Let a person in: a link that signs in once."""

from __future__ import annotations

from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.errors import Conflict
from tollkeeper.engine.registry.scopes import KeyScope
from tollkeeper.engine.runtime import Engine


class MakeLink(AccountVerb, frozen=True):
    """Make a code that signs `owner` in, which the effect holds this once, as `key`.

    Refuses where no service runs: sessions are kept in its memory.
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
