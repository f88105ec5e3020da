"""The head of a request: the id it goes by, and headers that may not be left out or sent twice."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from litestar.types import HTTPScope

from tollkeeper.api.http.errors import malformed_head

REQUEST_ID: Final = b"x-request-id"
_SANE = re.compile(rb"[\x21-\x7e]{1,128}")
_RANDOM_BYTES = 12
_ONCE = (b"authorization", b"host")


def request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """The caller's own id when it is 1 to 128 visible ASCII characters, else a random one."""
    sent = headers.get(REQUEST_ID)
    if sent is not None and _SANE.fullmatch(sent):
        return sent
    return os.urandom(_RANDOM_BYTES).hex().encode()


def check_head(scope: HTTPScope, headers: Mapping[bytes, bytes]) -> None:
    """Raises `Problem` 400 for a head whose meaning differs from reader to reader."""
    if b"host" not in headers and scope["http_version"] == "1.1":
        raise malformed_head("host", "a request of HTTP/1.1 names its host")
    names = [name for name, _ in scope["headers"]]
    if len(headers) == len(names):
        return
    for name in _ONCE:
        if names.count(name) > 1:
            raise malformed_head(name.decode(), "this header may be sent once")
