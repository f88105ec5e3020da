"""What nodes know of each other."""

from __future__ import annotations

import pytest

from tollkeeper.engine.journal.postgres.nodes import SeenNode, is_loopback, out_of_reach


def node(process: str, address: str) -> SeenNode:
    return SeenNode(process, address, "1", False, True, 0, 0.5, None)


def test_a_loopback_address_is_out_of_reach_once_another_machine_has_a_node() -> None:
    near = node("1 on a", "http://127.0.0.1:8001")
    beside = node("2 on a", "http://[::1]:8002")
    far = node("1 on b", "https://10.0.0.2:8001")
    assert out_of_reach([near, beside]) == []
    assert out_of_reach([near, beside, far]) == [near, beside]
    assert out_of_reach([near, far._replace(silent_s=60)]) == []


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("http://127.0.0.1:1", True),
        ("https://[::1]:1", True),
        ("http://localhost:1", True),
        ("http://LOCALHOST.:1", True),
        ("http://node.localhost:1", True),
        ("http://[::ffff:127.0.0.2]:1", True),
        ("http://0.0.0.0:1", True),
        ("http://[::]:1", True),
        ("http://[::ffff:10.0.0.2]:1", False),
        ("http://10.0.0.2:1", False),
        ("http://node-1.shop.example:1", False),
        ("", False),
    ],
)
def test_a_loopback_address_is_told_by_its_host(address: str, found: bool) -> None:
    assert is_loopback(address) == found
