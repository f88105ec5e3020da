"""Take the pictures of docs/console.md again: `python docs/console/take.py`, in two or three minutes.

A demo is served, and Debian's Chromium looks at it in both schemes; at dense pages also as a telephone
shows them, and at twice the size.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent
_LINK = re.compile(r"http://\S+/console/sign-in\?code=\S+")
_SIZE = {"width": 1280, "height": 900}
_SETTLE_S = 90
"""So long the demo's attack is let to show in the figures."""
_OTHER_SIZES = {"narrow": {"width": 360, "height": 800}, "zoomed": {"width": 640, "height": 450}}
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_DENSE = ("now", "payments", "payment")
_THRESHOLD = re.compile(r"(>=? *)(\d+)")


def main() -> None:
    """Writes `NAME-light.png` and `NAME-dark.png` for each page, and more of the dense ones."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    demo = [str(Path(sys.executable).with_name("toll")), "demo", "--port", port]
    with subprocess.Popen(demo, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            link = next(found[0] for line in served.stdout if (found := _LINK.search(line)))
            with sync_playwright() as started:
                browser = started.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                page = browser.new_context(viewport=_SIZE, locale="en").new_page()
                _take(page, (("sign-in", link, "button"),))
                page.click("button")
                page.wait_for_timeout(_SETTLE_S * 1000)
                _take_all(page, page.url)
                browser.close()
        finally:
            served.terminate()


def _take_all(page: Page, home: str) -> None:
    denied = f"{home}/payments?q=action%3Adeny"
    page.goto(denied)
    payment = _address_of(page, "table.payments tbody a")
    page.goto(payment)
    rule = _address_of(page, "header.decision a")
    page.goto(f"{home}/alerts")
    alert = _address_of(page, "table.rows tbody a")
    pages = (
        ("now", home, ".uplot"),
        ("payments", denied, "table.payments"),
        ("payment", payment, "pre.rule"),
        ("rules", f"{home}/rules", "table"),
        ("rule", rule, "table"),
        ("compare", f"{rule}/compare?before=1&after=3", "pre.rule"),
        ("alerts", f"{home}/alerts", "table"),
        ("alert", alert, "table"),
        ("contain", f"{home}/contain", "table"),
        ("edit", f"{rule}/edit", "#findings h2"),
        ("users", f"{home}/settings/users", "main"),
        ("keys", f"{home}/settings/keys", "table"),
    )
    after_containing = (
        ("list", f"{home}/lists/blocked_bins", "table"),
        ("came-back", f"{home}/came-back", "table"),
    )
    after_proposing = (
        ("changes", f"{home}/changes", "article"),
        ("lists", f"{home}/lists", "main"),
        ("score", f"{home}/score", ".uplot"),
        ("report", f"{home}/report", "table"),
        ("settings", f"{home}/settings", "main"),
    )
    _take(page, pages)
    page.goto(home)
    page.keyboard.press("?")
    _take_here(page, "help")
    page.goto(f"{home}/review")
    page.click("main form button")
    page.wait_for_selector("table.payments")
    page.keyboard.press("j")
    _take_here(page, "review")
    page.goto(f"{home}/contain")
    with page.expect_navigation():
        page.click("main form button")
    _take(page, after_containing)
    _propose(page, home, rule)
    _take(page, after_proposing)


def _take(page: Page, pages: tuple[tuple[str, str, str], ...]) -> None:
    """Each page is a name, an address, and what is there once it is ready."""
    for name, address, ready in pages:
        for scheme in _SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.goto(address)
            page.wait_for_selector(ready)
            page.screenshot(path=FOLDER / f"{name}-{scheme}.png")
        for size, viewport in _OTHER_SIZES.items() if name in _DENSE else ():
            page.set_viewport_size(viewport)
            page.screenshot(path=FOLDER / f"{name}-{size}.png")
            page.set_viewport_size(_SIZE)


def _take_here(page: Page, name: str) -> None:
    """A page that no address leads to as it is."""
    for scheme in _SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=FOLDER / f"{name}-{scheme}.png")


def _propose(page: Page, home: str, rule: str) -> None:
    """A version that somebody published alone, and one that waits, where two must agree; without the
    tests, which hold the thresholds that are changed.
    """
    page.goto(f"{home}/settings")
    page.check("input[name=approve_publish]")
    with page.expect_navigation():
        page.click("main form button >> nth=0")
    for text in ("Nobody is awake, and it goes on", "Fewer people challenged by day"):
        page.goto(f"{rule}/edit")
        sent = {name: page.input_value(f"[name={name}]") for name in ("name", "expected", "text")}
        sent["text"] = sent["text"].partition("  test ")[0].rstrip() + "\n"
        sent["text"] = _THRESHOLD.sub(
            lambda found: f"{found[1]}{int(found[2]) + 1}", sent["text"], 1
        )
        sent |= {"act": "propose", "reason": text}
        _post(page, f"{home}/publish", sent)
        if text.startswith("Nobody"):
            _post(page, f"{home}/changes/1", {"act": "alone", "until": "6h", "reason": text})


def _post(page: Page, address: str, form: dict[str, str]) -> None:
    origin = address.partition("/console")[0]
    answer = page.request.post(address, form={**form}, headers={"origin": origin}, max_redirects=0)
    assert answer.status == 303, answer.text()


def _address_of(page: Page, selector: str) -> str:
    found: Any = page.locator(selector).first.evaluate("link => link.href")
    return str(found)


if __name__ == "__main__":
    main()
