"""`toll new`: start a tested rule from a shipped example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.engine.offline.testing.starting import OccupiedError
from tollkeeper.engine.programs.load import SHIPPED

EXAMPLES = SHIPPED / "examples"
_PURPOSE = re.compile(r'# "(.*)"')
_GIVEN_FILE = re.compile(r'given (?:payment|history|event) "([^"]+)"')


class Template(NamedTuple):
    """An example: its name, and its purpose in one sentence."""

    name: str
    purpose: str


def templates() -> tuple[Template, ...]:
    """Return all templates by name."""
    return tuple(
        Template(path.stem, _purpose(path)) for path in sorted(EXAMPLES.glob(f"*{SUFFIX}"))
    )


def start_rule(template: str, folder: Path, name: str) -> list[Path]:
    """Write the template as the rule `name`, with the files that its tests use; return their paths.

    Raises `LookupError` for an unknown template, `OccupiedError` before writing anything.
    """
    if template not in {each.name for each in templates()}:
        raise LookupError(template)
    text = (EXAMPLES / f"{template}{SUFFIX}").read_text(encoding="utf-8")
    named = re.sub(rf"^rule {template}\b", f"rule {name}", text, count=1, flags=re.MULTILINE)
    made = {folder / f"{name}{SUFFIX}": named.encode()}
    for given in dict.fromkeys(_GIVEN_FILE.findall(text)):
        made[folder / given] = (EXAMPLES / given).read_bytes()
    for path in made:
        if path.exists():
            raise OccupiedError(f"{path} is there already, and nothing was written")
    for path, content in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(made)


def _purpose(path: Path) -> str:
    found = _PURPOSE.match(path.read_text(encoding="utf-8"))
    assert found is not None, path
    return found[1]
