"""Take the pictures of docs/console.md again: `python docs/console/take.py`, in a minute or two.

A demo is served, and Debian's Chromium looks at it in both schemes.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent
_LINK = re.compile(r"http://\S+/console/sign-in\?code=\S+")
_SIZE = {"width": 1280, "height": 900}
_SETTLE_S = 60
"""So long the demo's attack is let to show in the figures."""


def main() -> None:
    """Writes `NAME-light.png` and `NAME-dark.png` for each page."""
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
                page.goto(link)
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
    for name, address, ready in (
        ("now", home, ".uplot"),
        ("payments", denied, "table.payments"),
        ("payment", payment, "pre.rule"),
        ("rule", rule, "table"),
        ("edit", f"{rule}/edit", "#findings h2"),
        ("users", f"{home}/settings/users", "main"),
        ("keys", f"{home}/settings/keys", "table"),
    ):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(address)
            page.wait_for_selector(ready)
            page.screenshot(path=FOLDER / f"{name}-{scheme}.png")


def _address_of(page: Page, selector: str) -> str:
    found: Any = page.locator(selector).first.evaluate("link => link.href")
    return str(found)


if __name__ == "__main__":
    main()
