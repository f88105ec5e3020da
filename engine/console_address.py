"""Where the console of the service that last began to serve the folder is reached.

It is in a file of the data folder, so that commands print links that lead there.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from tollkeeper.engine.journal.source import JournalSource, folder_of

_ADDRESS_FILE: Final = "console.address"
_USUAL: Final = "http://127.0.0.1:8000"
_OF_ALL_ADDRESSES: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not listened on


def sign_in_link(source: JournalSource, address: str | None, code: str) -> str:
    """The link that signs in by a code, at `address` or else where the service's console listens."""
    place = address or _read_address(source) or _USUAL
    return f"{place.rstrip('/')}/console/sign-in?code={code}"


def _read_address(source: JournalSource) -> str | None:
    """The address as a browser on this machine takes it; None when no console was served."""
    with suppress(OSError, UnicodeDecodeError):
        return (folder_of(source) / _ADDRESS_FILE).read_text("ascii")
    return None


def keep_console_address(folder: Path, host: str, port: int) -> None:
    """Write where the console listens to the folder."""
    host = _OF_ALL_ADDRESSES.get(host, host)
    name = f"[{host}]" if ":" in host else host
    # On a full disk this is the least of the losses.
    with suppress(OSError, UnicodeEncodeError):
        (folder / _ADDRESS_FILE).write_text(f"http://{name}:{port}", "ascii")
