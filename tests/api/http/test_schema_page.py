"""`/schema` can be read with no network and no script, and leads everywhere it says."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tollkeeper.api.html import element
from tollkeeper.api.http.document import document
from tollkeeper.api.http.routes import ROUTES
from tollkeeper.api.http.schema_page import schema_page
from tollkeeper.tests.api.http.service import Service

VOID = {"meta"}


class Reader(HTMLParser):
    """What a page holds: its elements with their attributes, and whether they are nested well."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page() -> Reader:
    return Reader(schema_page(document()))


def test_the_page_is_well_nested(page: Reader) -> None:
    assert page.open == []


def test_nothing_is_loaded_from_anywhere(page: Reader) -> None:
    loading = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "source"}
    assert not loading & {tag for tag, _ in page.elements}
    assert not [said for _, said in page.elements if "src" in said]
    assert "url(" not in schema_page(document())
    assert "@import" not in schema_page(document())


def test_every_link_leads_to_a_place_on_the_page_or_to_the_document(page: Reader) -> None:
    ids = [said["id"] for _, said in page.elements if "id" in said]
    assert len(set(ids)) == len(ids)
    links = {said["href"] for tag, said in page.elements if tag == "a"}
    away = {"/schema/openapi.json", "/schema/openapi.yaml"}
    assert links - away <= {f"#{each}" for each in ids}


def test_every_operation_and_schema_has_its_place(page: Reader) -> None:
    ids = {said.get("id") for _, said in page.elements}
    assert {route.operation_id for route in ROUTES} <= ids
    assert {f"schema-{name}" for name in document()["components"]["schemas"]} <= ids


def test_headings_skip_no_level(page: Reader) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if tag in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_text_is_escaped() -> None:
    made = element("p", "<script>", title='"&')
    assert made == '<p title="&quot;&amp;">&lt;script&gt;</p>'


@pytest.mark.anyio
async def test_the_page_and_the_document_need_no_key(service: Service) -> None:
    async with service.client_with(None) as stranger:
        answer = await stranger.get("/schema")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert (await stranger.get("/schema/openapi.json")).json() == document()
