"""Differences in meaning between an author's text and the last commit."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.offline.rule_files import is_shared, known_contents
from tollkeeper.engine.programs.source import FileReading, read_file
from tollkeeper.engine.publish.diff import Difference, Side, diff_sides
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.parser import parse

GIT_TIMEOUT_S = 10


class NoChangeError(Exception):
    """There is nothing to compare with; the message says why."""


def is_in_git(path: Path) -> bool:
    return any((folder / ".git").exists() for folder in path.resolve().parents)


def change_since_head(
    path: Path, text: str, known: KnownNames, texts: Mapping[str, str]
) -> tuple[Difference, ...]:
    """Return the differences in meaning between the file at HEAD, with the files there, and this
    text.

    `texts` are the definitions and event types in `known`, by name. Raises `NoChangeError`.
    """
    names = _git(path.parent, "ls-tree", "-r", "-z", "--name-only", "HEAD", ".").split(b"\0")
    rules = [name.decode("utf-8", "replace") for name in names if name.endswith(SUFFIX.encode())]
    if path.name not in rules:
        raise NoChangeError(f"{path.name} is not in the last commit")
    contents = {name: _git(path.parent, "show", f"HEAD:./{name}") for name in rules}
    before = read_file(contents[path.name], known_contents(contents.values()))
    after = read_file(text.encode("utf-8", "replace"), known)
    if before.program is None or after.program is None:
        when = "in the last commit" if before.program is None else "now"
        raise NoChangeError(f"{path.name} has errors {when}")
    if type(before.program) is not type(after.program):
        raise NoChangeError(f"{path.name} declares something else now")
    read = (each.decode("utf-8", "replace") for each in contents.values())
    then = {file.name.text: text for text in read if is_shared(text) and (file := parse(text).file)}
    return diff_sides(_side(before, then), _side(after, texts))


def _side(reading: FileReading, texts: Mapping[str, str]) -> Side:
    assert reading.program is not None
    written: dict[str | None, str] = {None: reading.text}
    written.update(reading.shipped.items())
    written.update(texts.items())
    return Side(reading.program, written)


def _git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, timeout=GIT_TIMEOUT_S, check=True)  # noqa: S603 - fixed words and names that git gave
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", None) or str(error).encode()
        raise NoChangeError(message.decode("utf-8", "replace").strip()) from None
    return ran.stdout
