"""The data folder's secret key: it encrypts secrets, makes opaque ids from sequence numbers, and
draws pseudo-random numbers that nobody without it can predict.

It is in a file that only its owner can read and that no backup contains, so that a copy of the
databases reveals no secret (docs/operate.md, "Backups").
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tollkeeper.engine.journal.contract import JournalError

KEY_FILE: Final = "folder.key"
KEY_BYTES: Final = 32
_NONCE_BYTES = 12
_DRAWN_BYTES = 8
# What is named, the account, the number within its record, the sequence number: one block of AES.
_SPOT = struct.Struct(">BxHIQ")


class NameUse(IntEnum):
    """What an opaque id is used for: the same place has another id for each use."""

    CURSOR = 1
    ALERT = 2
    ALERT_DELIVERY = 3
    NODE = 4
    ENTRY_DELIVERY = 5


class Spot(NamedTuple):
    """A place in the journal: a sequence number, and a number within the entry there."""

    sequence: int
    number: int = 0


class FolderKey:
    """A key of 32 bytes, from which the key of each use is derived."""

    def __init__(self, key: bytes) -> None:
        self._sealing = AESGCM(_derive(key, b"secrets"))
        self._drawing = _derive(key, b"draws")
        self._naming = Cipher(algorithms.AES(_derive(key, b"places")), modes.ECB())  # noqa: S305 - one block each, every one another

    def seal(self, secret: str, owner: str) -> bytes:
        """Encrypt a secret; only the same `owner` can unseal it."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._sealing.encrypt(nonce, secret.encode(), owner.encode())

    def unseal(self, sealed: bytes, owner: str) -> str | None:
        """Decrypt a secret; None when another key or another owner sealed it."""
        try:
            opened = self._sealing.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], owner.encode()
            )
        except (InvalidTag, ValueError):
            return None
        return opened.decode()

    def draw(self, lot: str, below: int) -> int:
        """A number from 0 to less than `below`, the same for the same `lot`, unpredictable without the key."""
        drawn = hmac.digest(self._drawing, lot.encode(errors="surrogatepass"), "sha256")
        return int.from_bytes(drawn[:_DRAWN_BYTES]) % below

    def name_of(self, what: NameUse, account: int, spot: Spot) -> str:
        """The opaque id of a place in the journal: constant, and different in each account and use."""
        block = _SPOT.pack(what, spot.number, account, spot.sequence)
        return self._naming.encryptor().update(block).hex()

    def spot_of(self, what: NameUse, account: int, name: str) -> Spot | None:
        """The place that an opaque id stands for; None when it is no id of this account and use."""
        try:
            block = bytes.fromhex(name)
        except ValueError:
            return None
        if len(block) != _SPOT.size or len(name) != 2 * _SPOT.size:
            return None
        use, number, owner, sequence = _SPOT.unpack(self._naming.decryptor().update(block))
        return Spot(sequence, number) if (use, owner) == (what, account) else None


def open_folder_key(folder: Path) -> FolderKey:
    """The key of a data folder whose lock the caller holds; created when there is none.

    Raises `JournalError` for a file that can't be used.
    """
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _write_key(path)
        key = path.read_bytes()
    except OSError as error:
        raise JournalError(f"cannot open `{path}`: {error.strerror or error}") from error
    if len(key) != KEY_BYTES:
        raise JournalError(
            f"`{path}` is no key of {KEY_BYTES} bytes: put the right one there, or remove it and"
            " set the secrets of webhooks again"
        )
    return FolderKey(key)


def _write_key(path: Path) -> None:
    partial = path.with_suffix(".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)


def _derive(key: bytes, use: bytes) -> bytes:
    return hmac.new(key, use, hashlib.sha256).digest()
