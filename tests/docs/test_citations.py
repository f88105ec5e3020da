"""Whatever cites a page or a section cites one that is in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("api", "bench", "docs", "engine", "grammar", "tests")
CITED = re.compile(r'docs/[\w/]+\.md(?:[,;)]? ?(?:and )?"[^"\n]+")*')
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
ELSEWHERE = re.compile(r"\b[A-Z]{3,}\.md\b")
OURS = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}


def sources() -> Iterator[tuple[Path, str]]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*"):
            if path.suffix in {".py", ".lark"}:
                comments = re.sub(r"\n\s*(?:#|//)?\s*", " ", path.read_text())
                yield path, comments


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def headings(page: Path) -> set[str]:
    return set(re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE))


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_each_cited_page_and_section_is_there() -> None:
    for path, text in sources():
        for citation in CITED.findall(text):
            page, *sections = re.split(r'[,;)]? ?(?:and )?"', citation)
            assert (ROOT / page).is_file(), f"{path} cites {page}"
            cited = {section.rstrip(",") for section in sections if section}
            assert cited <= headings(ROOT / page), f"{path} cites {citation}"


def test_no_source_cites_a_document_from_elsewhere() -> None:
    for path, text in sources():
        assert set(ELSEWHERE.findall(text)) <= OURS, path


def test_each_link_of_a_page_leads_somewhere() -> None:
    for page in pages():
        for target, section in LINK.findall(page.read_text()):
            found = page.parent / target if target else page
            assert found.exists(), f"{page} links to {target}"
            if section:
                assert section in map(anchor, headings(found)), f"{page} links to #{section}"


def test_each_test_that_a_page_names_is_there() -> None:
    written = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    for page in pages():
        named = set(re.findall(r"`(test_[a-z0-9_]+)`", page.read_text()))
        assert named <= written, page


def test_each_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    to_read = [ROOT / "README.md"]
    while to_read:
        page = to_read.pop().resolve()
        if page.is_dir():
            to_read += set(page.glob("*.md")) - reached
        elif page not in reached:
            reached.add(page)
            if page.suffix == ".md":
                links = [target for target, _ in LINK.findall(page.read_text()) if target]
                to_read += [page.parent / target for target in links]
    written = {page.resolve() for page in (ROOT / "docs").rglob("*.md")}
    assert written - reached == {ROOT / "docs/reference.template.md"}
