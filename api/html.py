"""HTML from elements; text that is not `Html` is escaped, so nothing can slip through."""

from __future__ import annotations

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
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{join_html(*children)}</{tag}>")


def join_html(*children: str) -> Html:
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def markdown(text: str) -> Html:
    return Html(_MARKDOWN.render(text))


def inline_markdown(text: str) -> Html:
    return Html(_MARKDOWN.renderInline(text))
