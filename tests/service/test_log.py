"""Log lines never hold a request up, whatever becomes of their reader."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from structlog import get_logger

from tollkeeper.api.http.logs import WAITING, logging_to


def test_lines_come_out_whole_and_in_order(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream, logging_to(stream):
        for number in range(100):
            get_logger().info("request", number=number)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["number"] for line in lines] == list(range(100))


def test_what_a_library_warns_of_is_a_line_like_the_others(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream, logging_to(stream):
        logging.getLogger("uvicorn.error").warning("%s is odd", "this")
        logging.getLogger("uvicorn.error").info("passed over")
        try:
            raise RuntimeError("planted")
        except RuntimeError:
            logging.getLogger("asyncio").exception("it failed")
    logging.getLogger("uvicorn.error").warning("after the end")
    odd, failed = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert (odd["level"], odd["logger"], odd["words"]) == (
        "warning",
        "uvicorn.error",
        "this is odd",
    )
    assert (failed["level"], failed["words"]) == ("error", "it failed")
    assert "planted" in failed["exception"]


def test_a_reader_that_stops_holds_nobody_up_and_is_told_what_it_missed() -> None:
    """A pipe takes some hundred lines; then its writer would wait for the reader."""
    reader, writer = os.pipe()
    with (
        os.fdopen(writer, "w") as stream,
        os.fdopen(reader, "rb", 0) as pipe,
        logging_to(stream),
    ):
        for number in range(2 * WAITING):
            get_logger().info("request", number=number, filler="x" * 100)
        heard = b""
        while b"lines_dropped" not in heard:
            heard += pipe.read(65536)
    assert heard.count(b"\n") >= WAITING


def test_half_of_a_character_is_shown_and_ends_no_log(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream, logging_to(stream):
        get_logger().info("request", path="\ud800")
        get_logger().info("request", path="/")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["path"] for line in lines] == ["\ud800", "/"]
