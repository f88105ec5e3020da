"""Lay out text on one line where it fits, and broken where it doesn't.

A `LayoutGroup` is printed on one line, or broken at each of its `Line`s; inner groups are then
decided by themselves. There is no recursion, and each group is examined once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class Word:
    """Text without a break; `space` puts a space before it unless it begins a line."""

    text: str
    space: bool = False

    @property
    def width(self) -> float:
        return len(self.text) + self.space


@dataclass(frozen=True, slots=True)
class Line:
    """A place where a group may break, with the added indentation; nothing if it doesn't break."""

    shift: int
    width: ClassVar[float] = 0


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment: nothing can follow it on its line, so every group around it breaks."""

    text: str
    own_line: bool
    width: ClassVar[float] = inf


@dataclass(frozen=True, slots=True)
class LayoutGroup:
    """Parts that break together. `head` is the width up to the first possible break, `shift` the
    added indentation.
    """

    parts: tuple[LayoutPart, ...]
    shift: int
    width: float
    head: float
    breaks: bool


LayoutPart: TypeAlias = Word | Line | Remark | LayoutGroup


def group(parts: list[LayoutPart], shift: int = 0) -> LayoutGroup:
    head = 0.0
    breaks = False
    for part in parts:
        if isinstance(part, Line | Remark):
            breaks = True
            break
        if isinstance(part, LayoutGroup) and part.breaks:
            head, breaks = head + part.head, True
            break
        head += part.width
    return LayoutGroup(tuple(parts), shift, sum(part.width for part in parts), head, breaks)


class LayoutPage:
    """The lines laid out so far."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._lines: list[str] = []
        self._line = ""
        self._closed = False

    def write(self, part: LayoutPart, indent: int) -> None:
        """Lay out a part from the start of a line, at an indentation."""
        self._break(indent)
        todo: list[tuple[int, LayoutPart]] = [(indent, part)]
        while todo:
            base, part = todo.pop()
            match part:
                case Word():
                    self._word(part, base)
                case Line(shift):
                    self._break(base + shift)
                case Remark(text, own_line):
                    self._remark(text, own_line, base)
                case LayoutGroup() if self._fits(part, todo):
                    for word in _flat(part):
                        self._word(word, base)
                case LayoutGroup(parts, shift):
                    todo += [(base + shift, inner) for inner in reversed(parts)]

    def blank(self) -> None:
        """Add an empty line, except at the top."""
        self._break(0)
        if self._lines:
            self._lines.append("")

    def text(self) -> str:
        self._break(0)
        return "\n".join(self._lines) + "\n"

    def _break(self, indent: int) -> None:
        if self._line.strip():
            self._lines.append(self._line)
        self._line = " " * indent
        self._closed = False

    def _word(self, word: Word, indent: int) -> None:
        if self._closed:
            self._break(indent)
        space = " " if word.space and self._line.strip() else ""
        self._line += space + word.text

    def _remark(self, text: str, own_line: bool, indent: int) -> None:
        if self._line.strip():
            if own_line or self._closed:
                self._break(indent)
            else:
                self._line += "  "
        self._line += text
        self._closed = True

    def _fits(self, candidate: LayoutGroup, following: list[tuple[int, LayoutPart]]) -> bool:
        room = self.width - len(self._line) - candidate.width
        for _, part in reversed(following):
            if room < 0 or isinstance(part, Line | Remark):
                break
            if isinstance(part, LayoutGroup) and part.breaks:
                room -= part.head
                break
            room -= part.width
        return room >= 0


def _flat(whole: LayoutGroup) -> list[Word]:
    words: list[Word] = []
    todo: list[LayoutPart] = [whole]
    while todo:
        match todo.pop():
            case LayoutGroup(parts):
                todo += reversed(parts)
            case Word() as word:
                words.append(word)
            case _:
                pass
    return words
