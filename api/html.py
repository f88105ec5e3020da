"""HTML from elements; text that is not `Html` is escaped, so nothing can slip through."""

from __future__ import annotations

from functools import cache
from html import escape

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_VOID = frozenset({"br", "hr", "input", "link", "meta"})
"""Elements that hold nothing and have no end tag."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | None) -> Html:
    """An element; an attribute that is a word of Python's ends in `_`, one that is None is left out."""
    written = ""
    for name, value in attributes.items():
        if value is not None:
            written += f' {_attribute(name)}="{_escaped(value)}"'
    if tag in _VOID:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{join_html(*children)}</{tag}>")


def join_html(*children: str) -> Html:
    return Html(
        "".join([child if isinstance(child, Html) else _escaped(child) for child in children])
    )


@cache
def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _escaped(text: str) -> str:
    # A page has thousands of texts, and hardly any has one of these characters: `escape` alone takes
    # twice as long.
    if "&" in text or "<" in text or ">" in text or '"' in text or "'" in text:
        return escape(text)
    return text


def markdown(text: str) -> Html:
    return Html(_MARKDOWN.render(text))


def inline_markdown(text: str) -> Html:
    return Html(_MARKDOWN.renderInline(text))
