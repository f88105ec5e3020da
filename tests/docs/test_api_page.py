"""Every example of docs/api.md is run, in order, and answers what the page says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import pytest

from tollkeeper.tests.api.http.service import Service, open_service
from tollkeeper.tests.service.process import toll

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANY = "…"
"""Stands in the page for a text that the service makes up."""


@dataclass(frozen=True)
class Message:
    """A request or an answer: its first line, its headers, its JSON."""

    first: list[str]
    headers: dict[str, str]
    body: Any


def message(text: str) -> Message:
    head, _, body = text.partition("\n\n")
    first, *lines = head.strip().splitlines()
    headers = dict(line.split(": ", 1) for line in lines)
    return Message(first.split(" ", 2), headers, json.loads(body) if body else None)


def examples(page: str) -> Iterator[tuple[str, str]]:
    """Each command, and each request with its answer, as (kind, text)."""
    blocks = BLOCK.findall(page)
    assert {kind for kind, _ in blocks} == {"sh", "http", "python"}
    yield from blocks


def fits(answer: Any, said: Any) -> bool:
    if said == ANY:
        return isinstance(answer, str)
    if isinstance(said, dict):
        return answer.keys() == said.keys() and all(fits(answer[k], said[k]) for k in said)
    if isinstance(said, list):
        return len(answer) == len(said) and all(map(fits, answer, said))
    return bool(answer == said)


def run_commands(text: str, folder: Path, variables: dict[str, str]) -> None:
    for line in text.splitlines():
        name, command = re.fullmatch(r"(?:(\w+)=\$\()?(toll .*?)\)?", line).groups()
        done = toll(folder, *shlex.split(command)[1:])
        assert done.returncode == 0, done.stderr
        if name:
            variables[name] = done.stdout.strip()


async def ask(service: Service, request: Message, variables: dict[str, str]) -> Any:
    headers = {
        name: Template(value).substitute(variables) for name, value in request.headers.items()
    }
    method, path = request.first
    async with service.client_with(None) as client:
        content = json.dumps(request.body) if request.body is not None else None
        return await client.request(method, path, headers=headers, content=content)


@pytest.mark.anyio
async def test_every_example_answers_what_the_page_says(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    variables: dict[str, str] = {}
    blocks = list(examples(PAGE.read_text()))
    for kind, text in blocks:
        if kind == "sh":
            run_commands(text, folder, variables)
    messages = [message(text) for kind, text in blocks if kind == "http"]
    async with open_service(folder) as service:
        for request, said in zip(messages[::2], messages[1::2], strict=True):
            answer = await ask(service, request, variables)
            shown = (request.first, json.dumps(answer.json(), indent=2, ensure_ascii=False))
            assert answer.status_code == int(said.first[1]), shown
            assert fits(answer.json(), said.body), shown
            for name, value in said.headers.items():
                assert answer.headers[name] == value, shown


def test_a_changed_answer_is_noticed() -> None:
    assert not fits({"a": [1, 2]}, {"a": [1]})
    assert not fits({"a": 1, "b": 2}, {"a": 1})
    assert fits({"a": "x"}, {"a": ANY})
