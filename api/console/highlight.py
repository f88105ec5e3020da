"""A rule's text, highlighted with the values that one payment had."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.html import Html

_BOOLEAN = ("true", "false", "missing")
_END = re.compile(r"^[ \t]*(?:condition|otherwise|test)\b", re.MULTILINE)
_TESTS = re.compile(r"^[ \t]*test\b", re.MULTILINE)


_LONG = 5
"""A shorter value may occur in another text by chance."""


@dataclass(frozen=True, slots=True)
class Highlight:
    """A range of a text, with the HTML to insert before and after it."""

    start: int
    end: int
    before: str
    after: str


def highlight_rule(text: str, explanation: JsonObject, masks: Mapping[str, str]) -> Html:
    """Return the rule without its tests: the condition that was met is marked, and each comparison
    shows its values.

    `explanation` is the interface's explanation of a rule, with spans in `text`. Each value in
    `masks` is replaced by its mask.
    """
    last = _TESTS.search(text)
    shown = text if last is None else text[: last.start()].rstrip()
    marks = [*_blocks(text, explanation)]
    for condition in explanation["conditions"]:
        marks += _expression(condition["when"], masks)
    for let in explanation["lets"]:
        if let["source"] is None:
            marks += _expression(let["value"], masks)
    return _render(shown, [mark for mark in marks if mark.end <= len(shown)])


def highlight_expression(text: str, node: JsonObject, masks: Mapping[str, str]) -> Html:
    """Return one expression of the rule, highlighted as in the whole text."""
    start, end = node["span"]
    marks = [
        Highlight(mark.start - start, mark.end - start, mark.before, mark.after)
        for mark in _expression(node, masks)
    ]
    return _render(text[start:end], marks)


def _blocks(text: str, explanation: JsonObject) -> Iterator[Highlight]:
    for condition in explanation["conditions"]:
        found = re.search(rf"^[ \t]*condition {re.escape(condition['name'])}\b", text, re.MULTILINE)
        if found is None:
            continue
        end = _END.search(text, found.end())
        stop = len(text) if end is None else end.start()
        stop = found.start() + len(text[found.start() : stop].rstrip())
        outcome = condition["outcome"].replace(" ", "-")
        yield Highlight(found.start(), stop, f'<span class="block {outcome}">', "</span>")


def _expression(node: JsonObject, masks: Mapping[str, str]) -> Iterator[Highlight]:
    """Mark the innermost boolean expressions with the values they depend on; a non-boolean one with
    its own value.
    """
    parts = node["parts"]
    truths = [part for part in parts if part["value"] in _BOOLEAN and part["parts"]]
    if node["value"] in _BOOLEAN and truths:
        for part in parts:
            yield from _expression(part, masks)
        return
    value = node["value"]
    kind = value if value in _BOOLEAN else "value"
    values = [part["value"] for part in parts if not part["text"].startswith('"')]
    shown_values = mask_values(", ".join(values) if kind != "value" and values else value, masks)
    start, end = node["span"]
    yield Highlight(
        start,
        end,
        f'<span class="lit {kind}">',
        f'<span class="given" data-value="{escape(shown_values)}"> {escape(shown_values)}</span></span>',
    )


def mask_values(said: str, masks: Mapping[str, str]) -> str:
    """Replace each value in `masks` by its mask; short values only if they are the whole of a
    quoted text.
    """
    for value, mask in masks.items():
        whole = re.escape(value)
        bare = rf"|(?<![\w-]){whole}(?![\w-])" if len(value) >= _LONG else ""
        shown = mask.replace("\\", r"\\")
        said = re.sub(f'(?<="){whole}(?="){bare}', shown, said, flags=re.IGNORECASE)
    return said


def _render(text: str, marks: list[Highlight]) -> Html:
    ordered = sorted(marks, key=lambda mark: (mark.start, -mark.end))
    out: list[str] = []
    open_: list[Highlight] = []
    at = 0

    def up_to(place: int) -> None:
        nonlocal at
        out.append(escape(text[at:place]))
        at = place

    for mark in ordered:
        while open_ and open_[-1].end <= mark.start:
            up_to(open_[-1].end)
            out.append(open_.pop().after)
        if open_ and mark.end > open_[-1].end:
            continue
        up_to(mark.start)
        out.append(mark.before)
        open_.append(mark)
    while open_:
        up_to(open_[-1].end)
        out.append(open_.pop().after)
    up_to(len(text))
    return Html("".join(out))
