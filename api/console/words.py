"""The texts of all pages, by language, from `texts/*.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TEXTS = Path(__file__).with_name("texts")
_USUAL = "en"


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The texts of one language; call it with a text's name and the values to insert. Where a
    `count` is 1, a text may have another form, named with `_one`.
    """

    language: str
    texts: Mapping[str, str]

    def __call__(self, name: str, /, **held: object) -> str:
        is_one = str(held.get("count")) == "1" and f"{name}_one" in self.texts
        return self.texts[f"{name}_one" if is_one else name].format(**held)

    def group(self, name: str) -> Mapping[str, str]:
        """Return the texts of a group by their own names."""
        begin = f"{name}."
        return {
            each.removeprefix(begin): text
            for each, text in self.texts.items()
            if each.startswith(begin)
        }


@cache
def languages() -> Mapping[str, Words]:
    """Return the texts of each available language by its tag."""
    return {path.stem: Words(path.stem, _flat(path)) for path in sorted(TEXTS.glob("*.toml"))}


def choose(accepted: str) -> Words:
    """Return the texts that fit a header `Accept-Language` best."""
    known = languages()
    for tag in accepted.lower().split(","):
        wanted = tag.partition(";")[0].strip()
        for language, words in known.items():
            if wanted in (language.lower(), language.lower().partition("-")[0]):
                return words
    return known[_USUAL]


def _flat(path: Path) -> dict[str, str]:
    groups = tomllib.loads(path.read_text())
    return {
        f"{group}.{name}": text for group, texts in groups.items() for name, text in texts.items()
    }
