"""A file of what windows hold, so that a start need not read all of it from the journal again.

It says which journal it belongs to and up to which sequence number it holds what that brought; the
rest is read from there. It holds nothing that the journal does not, so that one which is missing,
damaged, half-written, of another journal or of another version is left, and costs time alone.

After a line that names the format come blocks, each a length (4 bytes), a BLAKE2b digest of 16
bytes and so many bytes of MessagePack; the last one counts them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from tollkeeper.engine.velocity.contract import Columns, SeriesPart

FILE = "windows.snapshot"
UNFINISHED = f"{FILE}.new"
SNAPSHOT_FORMAT = b"tollkeeper windows 1\n"
_SIZE_BYTES = 4
_DIGEST_BYTES = 16
_LONGEST_BEGINNING = 10
"""How many bytes the beginning of an array and a whole number take at most."""
BIG = 1
"""The MessagePack extension of a whole number that has more than 64 bits: its decimal digits."""


class SnapshotOrigin(Struct, frozen=True, array_like=True):
    """Which journal, up to which of its sequence numbers, and the release that wrote the file."""

    journal: str
    sequence: int
    release: str


class Block(Struct, frozen=True, array_like=True):
    """A `SeriesPart`, its columns encoded."""

    account: int
    series: str
    reach: int
    newest: int
    columns: msgspec.Raw


class End(Struct, frozen=True, array_like=True):
    """The last block: how many there are before it."""

    blocks: int


class SnapshotSeries(NamedTuple):
    """Where the parts of a series are in the file, and what all of them say."""

    reach: int
    newest: int
    offsets: list[int]


class SnapshotError(Exception):
    """Why a file is not used."""


class Snapshot:
    """A file that was looked through: it is whole, and belongs to the journal."""

    def __init__(
        self, path: Path, origin: SnapshotOrigin, series: dict[tuple[int, str], SnapshotSeries]
    ) -> None:
        self.path = path
        self.sequence = origin.sequence
        self._series = series

    def covers(self, account: int, series: str, reach: int) -> bool:
        """Whether it has a series, from as far back as `reach` (µs)."""
        held = self._series.get((account, series))
        return held is not None and held.reach >= reach

    def reach(self, account: int, series: str) -> int | None:
        """From how far back (µs) it has a series, None for one that it has not."""
        held = self._series.get((account, series))
        return None if held is None else held.reach

    def newest(self, account: int, series: str) -> int:
        """The latest arrival (µs) that the series had seen."""
        return self._series[account, series].newest

    def columns(self, account: int, series: str) -> Iterator[Columns]:
        """What the series held."""
        with self.path.open("rb") as file:
            for offset in self._series[account, series].offsets:
                file.seek(offset)
                # Its digest was compared when the file was looked through.
                _, body = _next_block(file)
                block = msgspec.msgpack.decode(body, type=Block)
                keys, counts, times, values = _decode(block.columns)
                yield _hashable(keys), counts, times, values


def write(made: Path, origin: SnapshotOrigin, parts: Iterable[SeriesPart]) -> None:
    """A new file, all of it on disk. Raises OSError."""
    made.unlink(missing_ok=True)
    opened = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "wb") as file:
        file.write(SNAPSHOT_FORMAT)
        _write_block(file, _encode(origin))
        blocks = 1
        for part in parts:
            _write_block(file, _encode(_block(part)))
            blocks += 1
        _write_block(file, _encode(End(blocks)))
        file.flush()
        os.fsync(file.fileno())


def look_through(path: Path, is_ours: Callable[[SnapshotOrigin], bool]) -> Snapshot:
    """Raises `SnapshotError`, or OSError."""
    with path.open("rb") as file:
        try:
            origin = _origin(file)
            if not is_ours(origin):
                raise SnapshotError("it belongs to another journal or release")
            return Snapshot(path, origin, _index(file))
        except msgspec.MsgspecError as error:
            raise SnapshotError(f"it is damaged: {error}") from error


def snapshot_sequence(path: Path) -> int:
    """Up to which sequence number the file holds what its journal brought; 0 where there is none to be
    read."""
    try:
        with path.open("rb") as file:
            return _origin(file).sequence
    except (OSError, SnapshotError, msgspec.MsgspecError):
        return 0


def _origin(file: BinaryIO) -> SnapshotOrigin:
    if file.read(len(SNAPSHOT_FORMAT)) != SNAPSHOT_FORMAT:
        raise SnapshotError("it is of another format")
    return msgspec.msgpack.decode(_read_block(file), type=SnapshotOrigin)


def overwrite_accounts(path: Path, accounts: Collection[int]) -> None:
    """Overwrites in the file what it holds of these accounts; nobody may read it before that is done.

    Raises `SnapshotError`, or OSError, for a file that can't be trusted then.
    """
    # A block is an array of five, of which the account is the first.
    their_own = tuple(b"\x95" + _encode(account) for account in accounts)
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        offset = len(SNAPSHOT_FORMAT)
        while offset < end:
            file.seek(offset)
            size = int.from_bytes(file.read(_SIZE_BYTES), "little")
            file.seek(_DIGEST_BYTES, os.SEEK_CUR)
            if file.read(_LONGEST_BEGINNING).startswith(their_own):
                file.seek(offset)
                _write_block(file, bytes(size))
            offset += _SIZE_BYTES + _DIGEST_BYTES + size
        if offset != end:
            raise SnapshotError("it is not all there")
        file.flush()
        os.fsync(file.fileno())


def _block(part: SeriesPart) -> Block:
    try:
        encoded = _encode(part.columns)
    except OverflowError:
        keys, counts, times, values = part.columns
        encoded = _encode(([*map(_small, keys)], counts, times, [*map(_small, values)]))
    return Block(part.account, part.series, part.reach, part.newest, msgspec.Raw(encoded))


def _index(file: BinaryIO) -> dict[tuple[int, str], SnapshotSeries]:
    found: dict[tuple[int, str], SnapshotSeries] = {}
    blocks = 1
    while True:
        offset = file.tell()
        body = _read_block(file)
        if _is_forgotten(body):
            blocks += 1
            continue
        try:
            each = msgspec.msgpack.decode(body, type=Block)
        except msgspec.ValidationError:
            break
        held = found.setdefault(
            (each.account, each.series), SnapshotSeries(each.reach, each.newest, [])
        )
        held.offsets.append(offset)
        blocks += 1
    if msgspec.msgpack.decode(body, type=End).blocks != blocks or file.read(1):
        raise SnapshotError("it is not all there")
    return found


def _is_forgotten(body: bytes) -> bool:
    return body.count(0) == len(body) > 0


def _write_block(file: BinaryIO, body: bytes) -> None:
    file.write(len(body).to_bytes(_SIZE_BYTES, "little") + _digest(body))
    file.write(body)


def _read_block(file: BinaryIO) -> bytes:
    digest, body = _next_block(file)
    if _digest(body) != digest:
        raise SnapshotError("it is damaged")
    return body


def _next_block(file: BinaryIO) -> tuple[bytes, bytes]:
    """The block, and the digest that the file has of it."""
    size = int.from_bytes(file.read(_SIZE_BYTES), "little")
    digest, body = file.read(_DIGEST_BYTES), file.read(size)
    if len(body) != size:
        raise SnapshotError("it is not all there")
    return digest, body


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()


_encode = msgspec.msgpack.Encoder().encode


def _from_extension(code: int, data: memoryview) -> Any:
    assert code == BIG
    return int(bytes(data))


_decode = msgspec.msgpack.Decoder(
    tuple[list[Any], list[int], bytes, list[Any]], ext_hook=_from_extension
).decode


def _small(value: Any) -> Any:
    """A value that MessagePack can hold."""
    if isinstance(value, tuple):
        return tuple(map(_small, value))
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(BIG, str(value).encode())
    return value


def _hashable(keys: list[Any]) -> list[Any]:
    """Keys of several parts are tuples, which MessagePack reads as lists; a series has one kind."""
    return list(map(tuple, keys)) if keys and type(keys[0]) is list else keys
