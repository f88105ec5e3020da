"""Scripts of others: as they were bundled, under their licences, and small."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tollkeeper.api.console.assets import assets
from tollkeeper.grammar.parser import keywords
from tollkeeper.tests.api.console.conftest import Shop
from tollkeeper.tests.api.console.test_pages import ADDRESSES

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "api" / "console" / "static"
BUNDLING = ROOT / "editors" / "console"
VENDORED = json.loads((BUNDLING / "vendor.json").read_text())
KIB = 1024


def test_every_vendored_file_is_listed_and_no_other() -> None:
    files = {path.name for path in (STATIC / "vendor").iterdir()} - {"LICENSES.txt"}
    assert files == VENDORED.keys()


@pytest.mark.parametrize("name", sorted(VENDORED))
def test_a_vendored_file_is_what_was_bundled(name: str) -> None:
    body = (STATIC / "vendor" / name).read_bytes()
    assert hashlib.sha256(body).hexdigest() == VENDORED[name]["sha256"]


def test_the_licence_of_each_package_is_there() -> None:
    texts = (STATIC / "vendor" / "LICENSES.txt").read_text()
    packages = {each["name"] for file in VENDORED.values() for each in file["packages"]}
    assert {name for name in packages if f"{name}\n\n" not in texts} == set()


async def test_every_page_but_the_editors_has_at_most_forty_kibibytes_of_scripts(
    shop: Shop,
) -> None:
    loaded: set[str] = set()
    for address in ADDRESSES:
        page = (await shop.browser.get(address)).text
        names = re.findall(r'<script src="/console/assets/([^"]+)"', page)
        loaded |= {name.partition(".")[0] for name in names}
        size = sum(len(assets()[name].packed) for name in names)
        assert names != []
        assert size <= 40 * KIB or "codemirror" in page, address
    assert loaded == {path.stem for path in STATIC.rglob("*.js")}


def test_the_editor_knows_the_languages_words() -> None:
    listed = json.loads(re.search(r"\[.*\]", (BUNDLING / "words.mjs").read_text())[0])
    assert listed == sorted(keywords())
