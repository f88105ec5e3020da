"""The four kinds of file that decide, as the interface names them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct, defstruct

from tollkeeper.api.http import examples
from tollkeeper.api.http.tags import DEFINITIONS, EVENT_TYPES, RULES, SCORECARDS
from tollkeeper.engine.registry.changes import ProgramKind
from tollkeeper.engine.registry.trials import Decider

FileNoun: TypeAlias = Literal["rule", "scorecard", "event_type", "definitions"]


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: `path` in paths and lists, `noun` in answers, `words` in sentences.

    Names of its types start with `type_name`; `text` is a small example file.
    """

    kind: ProgramKind
    path: str
    noun: FileNoun
    tag: str
    type_name: str
    words: str
    plural: str
    text: str

    @property
    def base(self) -> str:
        """The path of all files of the kind."""
        return f"/v1/{self.path}"

    @property
    def one(self) -> str:
        """The noun with its article."""
        return f"{'an' if self.words[0] in 'aeiou' else 'a'} {self.words}"

    @property
    def example(self) -> str:
        """The name of the example file."""
        return self.text.split()[1]

    def answer_type(self, suffix: str, type_: Any, member: str | None = None) -> type[Struct]:
        """Return the type of an answer that holds `type_` as the member `member`, by default the
        kind's noun.
        """
        return _answer_type(f"{self.type_name}{suffix}", member or self.noun, type_)


@cache
def _answer_type(name: str, member: str, type_: Any) -> type[Struct]:
    return defstruct(name, [(member, type_)], frozen=True)


FILE_KINDS: Final = (
    FileKind("rule", "rules", "rule", RULES, "Rule", "rule", "rules", examples.RULE),
    FileKind(
        "scorecard",
        "scorecards",
        "scorecard",
        SCORECARDS,
        "Scorecard",
        "scorecard",
        "scorecards",
        examples.SCORECARD,
    ),
    FileKind(
        "event",
        "event-types",
        "event_type",
        EVENT_TYPES,
        "EventType",
        "event type",
        "event types",
        examples.EVENT_TYPE,
    ),
    FileKind(
        "definitions",
        "definitions",
        "definitions",
        DEFINITIONS,
        "Definitions",
        "definitions file",
        "definitions",
        examples.DEFINITIONS,
    ),
)
NOUN_OF: Final[dict[ProgramKind, FileNoun]] = {each.kind: each.noun for each in FILE_KINDS}
KIND_OF: Final[dict[FileNoun, ProgramKind]] = {each.noun: each.kind for each in FILE_KINDS}
DECIDERS: Final = tuple(each for each in FILE_KINDS if each.kind in get_args(Decider))
"""The kinds that can be tried beside the active version."""
