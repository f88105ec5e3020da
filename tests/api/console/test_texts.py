"""Every text is in every language, with the same values in it, and every text is used."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from tollkeeper.api.console.words import choose, languages
from tollkeeper.engine.labels.label import SOURCES
from tollkeeper.engine.registry.audit import AUDIT_ACTIONS

CONSOLE = Path(__file__).parents[3] / "api" / "console"
SOURCE = "\n".join(path.read_text() for path in sorted(CONSOLE.rglob("*.py")))


def values(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", sorted(languages()))
def test_each_language_has_every_text_with_the_same_values(language: str) -> None:
    english, texts = languages()["en"].texts, languages()[language].texts
    assert texts.keys() == english.keys()
    assert {name: values(text) for name, text in texts.items()} == {
        name: values(text) for name, text in english.items()
    }


@pytest.mark.parametrize("language", sorted(languages()))
def test_one_of_a_kind_is_said_in_its_own_form(language: str) -> None:
    words = languages()[language]
    several = [name.removesuffix("_one") for name in words.texts if name.endswith("_one")]
    assert len(several) > 5
    for name in several:
        held = dict.fromkeys(values(words.texts[name]), "x")
        assert values(words.texts[f"{name}_one"]) == held.keys() - {"count"}
        one, two = (words(name, **{**held, "count": count}) for count in (1, 2))
        assert one == words(name, **{**held, "count": "1"})
        assert one == words.texts[f"{name}_one"].format(**held)
        assert two == words.texts[name].format(**{**held, "count": 2})


def test_every_text_that_the_pages_name_is_in_the_catalogue() -> None:
    named = set(re.findall(r'words\(\s*"([a-z_]+\.[a-z_]+)"', SOURCE))
    assert named - languages()["en"].texts.keys() == set()
    assert len(named) > 100


def test_whatever_the_log_and_the_labels_tell_of_has_a_text() -> None:
    told = {f"audit.{action}" for action in AUDIT_ACTIONS} | {f"source.{each}" for each in SOURCES}
    assert told - languages()["en"].texts.keys() == set()


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"),
        ("pt", "pt-BR"),
        ("de-DE,en;q=0.5", "en"),
        ("", "en"),
        ("xx,,;q=9", "en"),
    ],
)
def test_a_page_comes_in_the_language_that_the_browser_asks_for(
    accepted: str, language: str
) -> None:
    assert choose(accepted).language == language
