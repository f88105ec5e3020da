from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.api.html import Html, element, join_html

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("&<>\"'a;#x27", max_size=20)


class Read(HTMLParser):
    """What a browser finds in markup: elements with their attributes, and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_stands_in_an_element_and_in_its_attributes_as_itself(
    text: str, value: str, other: str
) -> None:
    shown = element("p", text, element("b", other), class_=value, data_id=other, title=None)
    read = Read(shown)
    assert read.elements == [("p", {"class": value, "data-id": other}), ("b", {})]
    assert read.text == text + other


@given(TEXTS)
def test_markup_is_joined_as_it_is_but_escaped_within_an_attribute(text: str) -> None:
    markup = element("b", text)
    assert Read(join_html(markup, text)).text == text + text
    assert Read(element("a", title=markup)).elements == [("a", {"title": str(markup)})]
    assert isinstance(join_html(text), Html)


def test_an_element_that_holds_nothing_has_no_end_tag() -> None:
    assert element("br") == "<br>"
    assert element("input", name="q", value='"') == '<input name="q" value="&quot;">'
