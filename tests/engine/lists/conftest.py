"""A writer of small MaxMind DB files, after the format's public description (version 2.0)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from pathlib import Path

import pytest

_MARKER = b"\xab\xcd\xefMaxMind.com"
_SEPARATOR = bytes(16)


def _field(kind: int, size: int, payload: bytes) -> bytes:
    head = bytes([kind << 5]) if kind < 8 else bytes([0, kind - 7])
    extra = b""
    if size >= 285:
        size, extra = 30, (size - 285).to_bytes(2)
    elif size >= 29:
        size, extra = 29, bytes([size - 29])
    return bytes([head[0] | size]) + head[1:] + extra + payload


def _unsigned(kind: int, value: int) -> bytes:
    payload = value.to_bytes((value.bit_length() + 7) // 8)
    return _field(kind, len(payload), payload)


def _encode(value: object) -> bytes:
    match value:
        case bool():
            return _field(14, int(value), b"")
        case str():
            return _field(2, len(value.encode()), value.encode())
        case float():
            return _field(3, 8, struct.pack(">d", value))
        case int():
            return _unsigned(9, value)
        case bytes():
            return value
        case list():
            return _field(11, len(value), b"".join(map(_encode, value)))
        case dict():
            pairs = (_encode(key) + _encode(item) for key, item in value.items())
            return _field(7, len(value), b"".join(pairs))
        case _:
            raise TypeError(value)


def maxmind_bytes(records: Mapping[str, object]) -> bytes:
    """A database of IPv6 trees (IPv4 below ::/96) with 32-bit records, one record a network."""
    nodes: list[list[int | bytes | None]] = [[None, None]]
    for text, record in records.items():
        network = ip_network(text)
        length = network.prefixlen + (96 if network.version == 4 else 0)
        bits = f"{int(network.network_address):0128b}"[:length]
        node = nodes[0]
        for bit in map(int, bits[:-1]):
            if node[bit] is None:
                nodes.append([None, None])
                node[bit] = len(nodes) - 1
            node = nodes[node[bit]]
        node[int(bits[-1])] = _encode(record)
    tree, data = b"", b""
    for node in nodes:
        for side in node:
            if side is None:
                number = len(nodes)
            elif isinstance(side, int):
                number = side
            else:
                number = len(nodes) + len(_SEPARATOR) + len(data)
                data += side
            tree += number.to_bytes(4)
    metadata = {
        "node_count": _unsigned(6, len(nodes)),
        "record_size": _unsigned(5, 32),
        "ip_version": _unsigned(5, 6),
        "database_type": "Test",
        "languages": ["en"],
        "binary_format_major_version": _unsigned(5, 2),
        "binary_format_minor_version": _unsigned(5, 0),
        "build_epoch": 1_800_000_000,
        "description": {"en": "made for a test"},
    }
    return tree + _SEPARATOR + data + _MARKER + _encode(metadata)


@pytest.fixture
def maxmind(tmp_path: Path) -> Callable[[Mapping[str, object]], Path]:
    """Writes the records by network to a file and gives its path."""

    def write(records: Mapping[str, object]) -> Path:
        path = tmp_path / "places.mmdb"
        path.write_bytes(maxmind_bytes(records))
        return path

    return write
