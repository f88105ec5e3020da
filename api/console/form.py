"""A submitted form: its fields as text."""

from __future__ import annotations

from typing import Any

from litestar import Request
from litestar.datastructures import FormMultiDict

FORM_BYTES = 1024 * 1024
"""The most bytes of a form: the largest file, of whose bytes each may be written as three."""
_MAX_FIELDS = 1000
_MAX_DIGITS = 9


class IncompleteFormError(Exception):
    """A field is missing or not a number, or there are too many: these pages didn't make the form."""


class Form:
    """The fields by name; reading a missing one raises `IncompleteFormError`."""

    __slots__ = ("_sent",)

    def __init__(self, sent: FormMultiDict) -> None:
        self._sent = sent

    def __getitem__(self, name: str) -> str:
        value = self._sent.get(name)
        if not isinstance(value, str):
            raise IncompleteFormError(name)
        return value

    def get(self, name: str) -> str:
        """Return a field, or an empty text if it was left out."""
        value = self._sent.get(name, "")
        return value if isinstance(value, str) else ""

    def all(self, name: str) -> list[str]:
        """Return all fields of this name."""
        return [each for each in self._sent.getall(name, []) if isinstance(each, str)]

    def whole(self, name: str) -> int:
        """Return a field as a whole number. Raises `IncompleteFormError`."""
        text = self[name]
        if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS:
            raise IncompleteFormError(name)
        return int(text)


async def read_form(request: Request[Any, Any, Any]) -> Form:
    """Read a form. Raises `IncompleteFormError` for one of many fields, before it reads them: that
    takes microseconds for each.
    """
    if (await request.body()).count(b"&") >= _MAX_FIELDS:
        raise IncompleteFormError("form")
    return Form(await request.form())


def rule_text(sent: Form) -> str:
    """Return the text with the line ends of rule files: browsers send carriage returns."""
    return sent.get("text").replace("\r\n", "\n")
