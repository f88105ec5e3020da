"""`toll demo` serves, says how to try it, and shows what is decided."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess

import httpx

from tollkeeper.tests.service.process import PATIENCE_S, TOLL


def test_the_line_that_the_demo_prints_makes_a_payment() -> None:
    command = [str(TOLL), "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        try:
            lines = iter(demo.stdout.readline, "")
            curl = shlex.split(next(line for line in lines if line.startswith("curl ")))
            url, body = curl[2], curl[-1]
            headers = dict(curl[each + 1].split(": ") for each in (3, 5))
            answer = httpx.post(url, content=body, headers=headers, timeout=PATIENCE_S)
            assert answer.status_code == 201, answer.text
            assert answer.json()["payment"]["analyses"]["rule"]["name"] == "web_checkout"
            assert next(
                line for line in lines if re.search(r"score \d\.\d\d  (allow|chall|deny)", line)
            )
        finally:
            demo.send_signal(signal.SIGINT)
    assert demo.returncode == 0
