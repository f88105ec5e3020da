"""A form that was sent: its fields as text."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.datastructures import FormMultiDict

_MAX_DIGITS = 9


class IncompleteFormError(Exception):
    """A form lacks a field, or one is no number: these pages did not make it."""


class Form:
    """The fields by name; one that is needed and not there raises `IncompleteFormError`."""

    __slots__ = ("_sent",)

    def __init__(self, sent: FormMultiDict) -> None:
        self._sent = sent

    def __getitem__(self, name: str) -> str:
        value = self._sent.get(name)
        if not isinstance(value, str):
            raise IncompleteFormError(name)
        return value

    def get(self, name: str) -> str:
        """A field that may be left out, then empty."""
        value = self._sent.get(name, "")
        return value if isinstance(value, str) else ""

    def whole(self, name: str) -> int:
        """A field that holds a whole number. Raises `IncompleteFormError`."""
        text = self[name]
        if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
            raise IncompleteFormError(name)
        return int(text)


async def read_form(request: Request[Any, Any, Any]) -> Form:
    return Form(await request.form())


def rule_text(sent: Form) -> str:
    """The text as rule files have it: browsers send lines with a carriage return."""
    return sent.get("text").replace("\r\n", "\n")
