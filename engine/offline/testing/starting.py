"""`toll init`: a first folder of rules, with tests, ready for a repository of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

STARTER = Path(__file__).parent / "starter"
_PLACES: Mapping[str, str] = {
    "README.md": "README.md",
    "checkout.rule": "checkout.rule",
    "first_day.jsonl": "cases/first_day.jsonl",
    "rules.yml": ".github/workflows/rules.yml",
}


class OccupiedError(Exception):
    """The folder has a file of that name already; nothing was written."""


def start_folder(folder: Path) -> list[Path]:
    """Write the starting files and return their paths. Raises `OccupiedError`."""
    places = {folder / place: STARTER / name for name, place in _PLACES.items()}
    for path in places:
        if path.exists():
            raise OccupiedError(f"{path} is there already, and nothing was written")
    for path, source in places.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
    return list(places)
