"""A file with the windows' elements, so that a start need not derive all of them from the journal.

The file names its journal and the sequence number up to which it counts the entries; later ones are
read from the journal. A file that is missing, damaged, incomplete, or of another journal, of another
past of it, or of another version is not used: the start then only takes longer.

A line that names the format is followed by blocks: a length (4 bytes, little-endian), the BLAKE2b
digest (16 bytes) of the content, and the content, in MessagePack. The last block has their number.

Series that count the same payments hold the same texts. Each text of an account is in the file once,
in the first block that holds it; all blocks refer to it by its number, from 0 in the order of the
account's blocks. So each is one object again when it is read, as it was in the windows.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from tollkeeper.engine.journal.past import Newest
from tollkeeper.engine.velocity.contract import Columns, SeriesPart
from tollkeeper.engine.velocity.texts import NO_PART, number_texts, texts_of

FILE = "windows.snapshot"
UNFINISHED = f"{FILE}.new"
SNAPSHOT_FORMAT = b"tollkeeper windows 3\n"
_SIZE_BYTES = 4
_DIGEST_BYTES = 16
_MAX_PREFIX_BYTES = 10
"""The most bytes of an array's first byte and the integer after it."""
Packed: TypeAlias = list[Any] | bytes | dict[int, list[Any] | bytes]
"""A column of the file, see `_packed`."""
BIG = 1
"""The MessagePack extension for an integer of more than 64 bits: its decimal digits."""


class SnapshotOrigin(Struct, frozen=True, array_like=True):
    """The journal's identity, the last sequence number counted, the release that wrote the file, and
    the journal's newest entry then.
    """

    journal: str
    sequence: int
    release: str
    newest: Newest


class Block(Struct, frozen=True, array_like=True):
    """A `SeriesPart`, its columns encoded, and the account's texts that no block before it has."""

    account: int
    series: str
    reach: int
    newest: int
    texts: list[str]
    columns: msgspec.Raw


class End(Struct, frozen=True, array_like=True):
    """The last block: the number of blocks before it."""

    blocks: int


class SnapshotSeries(NamedTuple):
    """The offsets in the file of a series' parts, what all of them have in common, and the texts of the
    account by their numbers."""

    reach: int
    newest: int
    offsets: list[int]
    texts: list[str]


class SnapshotError(Exception):
    """A file can't be used; the message says why."""


class Snapshot:
    """A file that was checked: it is complete and belongs to the journal."""

    def __init__(
        self, path: Path, origin: SnapshotOrigin, series: dict[tuple[int, str], SnapshotSeries]
    ) -> None:
        self.path = path
        self.origin = origin
        self._series = series

    @property
    def sequence(self) -> int:
        """The last sequence number counted."""
        return self.origin.sequence

    def covers(self, account: int, series: str, reach: int) -> bool:
        """Whether the file has a series that reaches back at least `reach` (µs)."""
        held = self._series.get((account, series))
        return held is not None and held.reach >= reach

    def reach(self, account: int, series: str) -> int | None:
        """How far back (µs) a series reaches, None for one that the file lacks."""
        held = self._series.get((account, series))
        return None if held is None else held.reach

    def newest(self, account: int, series: str) -> int:
        """The latest arrival (µs) when the series was written."""
        return self._series[account, series].newest

    def columns(self, account: int, series: str) -> Iterator[Columns]:
        """The series' elements."""
        held = self._series[account, series]
        with self.path.open("rb") as file:
            for offset in held.offsets:
                file.seek(offset)
                # The digest was compared when the file was checked.
                _, body = _next_block(file)
                block = msgspec.msgpack.decode(body, type=Block)
                keys, counts, times, values = _decode(block.columns)
                yield _unpacked(keys, held.texts), counts, times, _unpacked(values, held.texts)


def write(path: Path, origin: SnapshotOrigin, parts: Iterable[SeriesPart]) -> None:
    """Write a new file; returns once it is on disk. Raises OSError."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(SNAPSHOT_FORMAT)
        _write_block(file, _encode(origin))
        blocks = 1
        numbers: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for part in parts:
            _write_block(file, _encode(_block(part, numbers[part.account])))
            blocks += 1
        _write_block(file, _encode(End(blocks)))
        file.flush()
        os.fsync(file.fileno())


def look_through(path: Path, is_ours: Callable[[SnapshotOrigin], bool]) -> Snapshot:
    """Check a file and index its series. Raises `SnapshotError`, or OSError."""
    with path.open("rb") as file:
        try:
            origin = _origin(file)
            if not is_ours(origin):
                raise SnapshotError("it belongs to another journal or release")
            return Snapshot(path, origin, _index(file))
        except msgspec.MsgspecError as error:
            raise SnapshotError(f"it is damaged: {error}") from error


def snapshot_sequence(path: Path) -> int:
    """The last sequence number that the file counts, 0 for a missing or unreadable file."""
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
    """Overwrite the blocks of these accounts with zeros; the file must not be read meanwhile.

    When this raises `SnapshotError` or OSError, the file must not be used any more.
    """
    # A `Block` is an array of six members, and the account is the first.
    prefixes = tuple(b"\x96" + _encode(account) for account in accounts)
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        offset = len(SNAPSHOT_FORMAT)
        while offset < end:
            file.seek(offset)
            size = int.from_bytes(file.read(_SIZE_BYTES), "little")
            file.seek(_DIGEST_BYTES, os.SEEK_CUR)
            if file.read(_MAX_PREFIX_BYTES).startswith(prefixes):
                file.seek(offset)
                _write_block(file, bytes(size))
            offset += _SIZE_BYTES + _DIGEST_BYTES + size
        if offset != end:
            raise SnapshotError("it is not all there")
        file.flush()
        os.fsync(file.fileno())


def _block(part: SeriesPart, numbers: dict[str, int]) -> Block:
    added: list[str] = []
    pack = partial(_packed, numbers, added)
    keys, counts, times, values = part.columns
    packed = pack(keys), counts, times, pack(values)
    try:
        columns = _encode(packed)
    except OverflowError:
        columns = _encode(_encodable(packed))
    return Block(part.account, part.series, part.reach, part.newest, added, msgspec.Raw(columns))


def _packed(numbers: dict[str, int], added: list[str], values: list[Any]) -> Packed:
    """Texts as their numbers; tuples, all of the same length, as one column for each part."""
    if not values or type(values[0]) is not tuple:
        numbered = number_texts(numbers, added, values, NO_PART)
        return values if numbered is None else numbered
    columns: dict[int, list[Any] | bytes] = {}
    for part in range(len(values[0])):
        numbered = number_texts(numbers, added, values, part)
        columns[part] = [value[part] for value in values] if numbered is None else numbered
    return columns


def _unpacked(packed: Packed, texts: list[str]) -> list[Any]:
    if isinstance(packed, dict):
        return [*zip(*(_unpacked(part, texts) for part in packed.values()), strict=True)]
    if isinstance(packed, bytes):
        return texts_of(packed, texts)
    return packed


def _index(file: BinaryIO) -> dict[tuple[int, str], SnapshotSeries]:
    index: dict[tuple[int, str], SnapshotSeries] = {}
    texts: defaultdict[int, list[str]] = defaultdict(list)
    blocks = 1
    while True:
        offset = file.tell()
        body = _read_block(file)
        if _is_overwritten(body):
            blocks += 1
            continue
        try:
            each = msgspec.msgpack.decode(body, type=Block)
        except msgspec.ValidationError:
            break
        of_account = texts[each.account]
        of_account += each.texts
        held = index.setdefault(
            (each.account, each.series), SnapshotSeries(each.reach, each.newest, [], of_account)
        )
        held.offsets.append(offset)
        blocks += 1
    if msgspec.msgpack.decode(body, type=End).blocks != blocks or file.read(1):
        raise SnapshotError("it is not all there")
    return index


def _is_overwritten(body: bytes) -> bool:
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
    """The stored digest of the next block, and its content."""
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
    tuple[Packed, list[int], bytes, Packed], ext_hook=_from_extension
).decode


def _encodable(value: Any) -> Any:
    """The value as MessagePack can encode it."""
    if isinstance(value, list | tuple):
        return [*map(_encodable, value)]
    if isinstance(value, dict):
        return {key: _encodable(each) for key, each in value.items()}
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(BIG, str(value).encode())
    return value
