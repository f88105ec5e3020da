"""`toll demo` serves, says how to try it, shows what is decided, and is attacked."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Iterator
from multiprocessing import Pipe

import httpx
import pytest

from tollkeeper.tests.service.hurried_demo import hurried_demo
from tollkeeper.tests.service.process import PATIENCE_S, Process


@pytest.fixture(scope="module")
def demo() -> Iterator[Callable[[], Iterator[str]]]:
    """All that a demo prints, from its beginning, line by line as it does; it ends well when it is
    told to."""
    said: list[str] = []

    def lines() -> Iterator[str]:
        yield from [*said]
        while line := printed.readline():
            said.append(line)
            yield line

    read, written = Pipe(duplex=False)
    running = Process(hurried_demo, written)
    written.close()
    with read, open(read.fileno(), closefd=False) as printed:
        try:
            yield lines
        finally:
            running.send_signal(signal.SIGINT)
            printed.read()
    assert running.wait(PATIENCE_S) == 0


def test_the_line_that_the_demo_prints_makes_a_payment(
    demo: Callable[[], Iterator[str]],
) -> None:
    lines = demo()
    curl = shlex.split(next(line for line in lines if line.startswith("curl ")))
    url, body = curl[2], curl[-1]
    headers = dict(curl[each + 1].split(": ") for each in (3, 5))
    answer = httpx.post(url, content=body, headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 201, answer.text
    assert answer.json()["payment"]["analyses"]["rule"]["name"] == "web_checkout"
    assert next(line for line in lines if re.search(r"score \d\.\d\d  (allow|chall|deny)", line))


def test_its_attack_raises_an_alert_from_which_the_console_stops_it(
    demo: Callable[[], Iterator[str]],
) -> None:
    lines = demo()
    link = next(found[0] for line in lines if (found := re.search(r"http\S+\?code=\S+", line)))
    key = next(found[1] for line in lines if (found := re.search(r"key (\S+)", line)))
    url = str(httpx.URL(link).join("/"))
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=f"{url}v1", headers=headers, timeout=PATIENCE_S) as client:
        alert = next(raised[0] for _ in lines if (raised := alerts(client)))
        assert alert["title"] == "Card numbers of one BIN are guessed"
        (bin_,) = alert["key"]
        contain(url, key, alert["id"], lines)
        entries = client.get("/lists/blocked_bins/entries").json()["entries"]
        assert [each["value"] for each in entries] == [bin_]
        stopped = f"bin:{bin_} condition:blocked action:deny status:blocked"
        assert next(True for _ in lines if counted(client, stopped) >= 5)
        assert alerts(client)[0]["mark"]["state"] == "acknowledged"
        rule = client.get("/rules/web_checkout").json()["rule"]
        tried = client.get("/rules/web_checkout/shadow").json()["shadow"]
        assert (rule["active"], tried["version"]) == (2, 3)
        assert tried["evaluated"] > 0


def alerts(client: httpx.Client) -> list[dict[str, str]]:
    return client.get("/alerts").json()["alerts"]


def counted(client: httpx.Client, query: str) -> int:
    return client.get("/payments/count", params={"q": query}).json()["count"]


def contain(url: str, key: str, alert: str, lines: Iterator[str]) -> None:
    """Sends the form of the alert's page as it is shown, with what is chosen there already.

    That is found by the index, which may be behind the alert: the page is looked at for each line.
    """
    origin = {"origin": url.rstrip("/")}
    with httpx.Client(base_url=f"{url}console", headers=origin, timeout=PATIENCE_S) as browser:
        signed_in = browser.post("/sign-in", data={"key": key})
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        shown = (browser.get(f"/alerts/{alert}", headers={"cookie": cookie}).text for _ in lines)
        (chosen,) = next(
            found for page in shown if (found := re.findall(r'value="(bin:[^"]+)" checked', page))
        )
        form = {"alert": alert, "span": "6h", "pick": chosen, "list_bin": "blocked_bins"}
        sent = {**form, "reason": "card testing"}
        done = browser.post("/contain", data=sent, headers={"cookie": cookie})
        assert "contained=1" in done.headers["location"], done.text
