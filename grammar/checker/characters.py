"""Warn of characters that mislead a reader: in strings those that are invisible, bidirectional, or of
mixed scripts; in comments those that make a line look like another one, or like two.
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

_TURNING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_BREAKING = "\u2028\u2029"
_IGNORABLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u2800"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_AFTER_ASCII = "(?<=[\\x21-\\x7e])[\ufe00-\ufe0f](?!\u20e3)"
"""A variation selector is seen on an emoji, and as part of a keycap."""
_HIDDEN = re.compile(f"[{_TURNING}{_BREAKING}{_IGNORABLE}]|{_AFTER_ASCII}")
_MISLEADING = re.compile(f"[{_TURNING}{_BREAKING}]")
_SIMILAR_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
_WORD = re.compile(r"[^\W\d_]+")


def odd_characters(file: s.File, text: str) -> Iterator[Diagnostic]:
    """Warn of misleading characters in a file's strings and comments; an escape sequence is taken as
    intended.
    """
    if text.isascii():
        return
    for comment in file.comments:
        for place, found in _in(_MISLEADING, text, comment.span):
            yield say.misleading_comment(place, found, _name(found))
    waiting: list[Any] = [file]
    while waiting:
        node = waiting.pop()
        if isinstance(node, s.Text | s.Regex):
            yield from _of_string(text, node.span, "u" if isinstance(node, s.Text) else "x")
        elif isinstance(node, s.Node):
            waiting.extend(getattr(node, field.name) for field in fields(node))
        elif isinstance(node, tuple) and not isinstance(node, s.Span):
            waiting.extend(node)


def _of_string(text: str, span: s.Span, escape: str) -> Iterator[Diagnostic]:
    """`escape` is the letter with which a string of this kind writes a character by its number."""
    for place, found in _in(_HIDDEN, text, span):
        written = f"\\{escape}{{{ord(found):04x}}}"
        yield say.hidden_character(place, found, _name(found), written)
    for place, word in _in(_WORD, text, span):
        scripts = sorted({script for script in map(_script, word) if script in _SIMILAR_SCRIPTS})
        if len(scripts) > 1:
            yield say.mixed_scripts(place, word, [script.title() for script in scripts])


def _in(pattern: re.Pattern[str], text: str, span: s.Span) -> Iterator[tuple[s.Span, str]]:
    for found in pattern.finditer(text, *span):
        yield s.Span(*found.span()), found[0]


def _name(character: str) -> str:
    return unicodedata.name(character, "unnamed").lower()


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ")[0]
