"""Styles and scripts, served under names that contain their hash, so that browsers may cache them
for ever.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STATIC = Path(__file__).with_name("static")
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as served."""

    name: str
    media_type: str
    body: bytes
    packed: bytes


@cache
def assets() -> dict[str, Asset]:
    """Return all assets by the name under which they are served."""
    found = [_read(path) for path in sorted(STATIC.rglob("*")) if path.suffix in _TYPES]
    return {asset.name: asset for asset in found}


@cache
def asset_address(file: str) -> str:
    """Return an asset's address, for `console.css` or `vendor/htmx.js`."""
    return f"/console/assets/{_read(STATIC / file).name}"


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    digest = hashlib.sha256(body).hexdigest()[:16]
    name = f"{path.stem}.{digest}{path.suffix}"
    return Asset(name, _TYPES[path.suffix], body, gzip.compress(body, mtime=0))
