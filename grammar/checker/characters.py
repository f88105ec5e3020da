"""Warn of characters in strings that mislead a reader: invisible, bidirectional, or of mixed
scripts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import syntax as s
from tollkeeper.grammar.diagnostics import Diagnostic

_HIDDEN = re.compile(
    "[\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_SIMILAR_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
_WORD = re.compile(r"[^\W\d_]+")


def odd_characters(file: s.File, text: str) -> Iterator[Diagnostic]:
    """Warn of misleading characters in a file's strings; an escape sequence is taken as intended."""
    if text.isascii():
        return
    waiting: list[Any] = [file]
    while waiting:
        node = waiting.pop()
        if isinstance(node, s.Text | s.Regex):
            yield from _of_string(text[node.span.start : node.span.end], node.span)
        elif isinstance(node, s.Node):
            waiting.extend(getattr(node, field.name) for field in fields(node))
        elif isinstance(node, tuple) and not isinstance(node, s.Span):
            waiting.extend(node)


def _of_string(written: str, span: s.Span) -> Iterator[Diagnostic]:
    for hidden in _HIDDEN.finditer(written):
        place = s.Span(span.start + hidden.start(), span.start + hidden.end())
        yield say.hidden_character(place, hidden[0], unicodedata.name(hidden[0], "unnamed"))
    for word in _WORD.finditer(written):
        scripts = sorted({script for script in map(_script, word[0]) if script in _SIMILAR_SCRIPTS})
        if len(scripts) > 1:
            place = s.Span(span.start + word.start(), span.start + word.end())
            yield say.mixed_scripts(place, word[0], [script.title() for script in scripts])


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0]
