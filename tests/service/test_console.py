"""The console in a real browser, beside a real service: as an analyst has it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from html import unescape
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tollkeeper.api.console.page import GO_KEYS, NAVIGATION
from tollkeeper.tests.api.http.service import payment
from tollkeeper.tests.service.process import new_key, serving

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
AXE_SCRIPT = pytest.importorskip("axe_playwright_python.base").AXE_SCRIPT
# The shell draws no window around a page, which takes as much as a third of its processor time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
# A page's scripts run for a moment: to optimize them takes longer than it saves.
UNOPTIMIZED = "--js-flags=--no-opt,--no-maglev"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")

RULE = """rule gate "What comes through"
  list blocked: string

  condition known "A device that an analyst has blocked"
    when device.fingerprint.id in @blocked
    then deny

  condition dear "More than this shop sells"
    when amount > 1000.00
    then deny
"""
ASKED = {"bot_behaviour": True, "rule": {"name": "gate"}}
BOT = {"ip_address": "198.51.100.7", "fingerprint": {"id": "d-bot-7", "provider": "basic"}}
PAGES = (
    "/console",
    "/console/payments",
    "/console/payments/bot-3",
    "/console/review",
    "/console/alerts",
    "/console/rules",
    "/console/rules/gate",
    "/console/rules/gate/edit",
    "/console/lists",
    "/console/lists/blocked",
    "/console/score",
    "/console/report",
    "/console/changes",
    "/console/settings",
    "/console/settings/users",
    "/console/settings/keys",
    "/console/contain",
    "/console/came-back",
)


WIDE = {"width": 1280, "height": 900}
USUAL = {"width": 1280, "height": 720}
NARROW = (360, 640)
"""A telephone's width, and that of `WIDE` at twice the size."""


@dataclass
class Desk:
    """A service with an attack under way, and a browser with a window that is signed in."""

    url: str
    key: str
    client: httpx.Client
    browser: Any

    @cached_property
    def window(self) -> Any:
        return self.sign_in()

    @cached_property
    def unscripted(self) -> Any:
        """A window that runs no scripts of pages: one for all tests too."""
        return self.sign_in(java_script_enabled=False)

    def page(
        self, at: str = "/console", viewport: dict[str, int] = USUAL, language: str = "en"
    ) -> Any:
        """The window, which shows the page `at`: one for all tests, as to open another takes as much
        of the processor as all that is done in it.
        """
        self.window.unroute_all()
        self.window.emulate_media(media="screen")
        self.window.set_viewport_size(viewport)
        self.window.set_extra_http_headers({"accept-language": language})
        return self.show(self.window, at)

    @contextmanager
    def own_page(self, at: str = "/console", **context: Any) -> Iterator[Any]:
        """A window of its own `context` that shows the page `at`."""
        page = self.sign_in(**context)
        yield self.show(page, at)
        page.context.close()

    def sign_in(self, **context: Any) -> Any:
        page = self.browser.new_context(**context).new_page()
        # A page may take long on a busy machine.
        page.set_default_timeout(60_000)
        page.request.post(
            f"{self.url}/console/sign-in",
            form={"key": self.key},
            headers={"origin": self.url},
            max_redirects=0,
        )
        return page

    def show(self, page: Any, at: str) -> Any:
        page.goto(self.url + at)
        assert page.url == self.url + at
        return page


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("console") / "data"
    key = new_key(folder, "admin")
    with serving(folder) as running, playwright.sync_playwright() as started:
        headers = {"authorization": f"Bearer {key}"}
        browser = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", UNOPTIMIZED],
        )
        with httpx.Client(base_url=f"{running.url}/v1", headers=headers, timeout=60) as client:
            attack(client)
            wait_until_found(client, 30)
            yield Desk(running.url, key, client, browser)
        browser.close()


def attack(client: httpx.Client) -> None:
    """A rule, then people's payments among those of one device."""
    watched = client.post("/event-types/payment/versions?publish=true", content=WATCH)
    assert watched.status_code == 201, watched.text
    stored = client.post("/rules/gate/versions?publish=true", content=RULE)
    assert stored.status_code == 201, stored.text
    for number in range(25):
        bot = payment(id=f"bot-{number}", amount=2000 + number, device=BOT, analyze=ASKED)
        assert client.post("/payments", json=bot).status_code == 201
        if number % 5 == 0:
            device = {"ip_address": f"203.0.113.{number}"}
            user = {"id": f"u-{number}"}
            card = {"network": "visa", "presence": "card_not_present", "bin": "55000000"}
            method = {"type": "credit_card", "card": {**card, "last_four": f"{number:04}"}}
            person = payment(
                id=f"person-{number}",
                device=device,
                user=user,
                method=method,
                merchant={"id": "m-2"},
                analyze=ASKED,
            )
            assert client.post("/payments", json=person).status_code == 201


WATCH = """event payment
  metric seen = count(payments by merchant.id over 1h)
  monitor burst "Many payments of one merchant" when seen >= 20 by merchant.id
"""


def wait_until_found(client: httpx.Client, count: int, query: str = "") -> None:
    """The index follows the journal in a process of its own."""
    while client.get("/payments/count", params={"q": query}).json()["count"] < count:
        sleep(0.1)


def wait_until_followed(client: httpx.Client) -> None:
    """Until the index has all that was acknowledged."""
    while client.get("/payments/count").json()["lag_ms"] > 0:
        sleep(0.1)


def test_no_page_has_an_error_a_foreign_request_or_a_barrier_in_any_scheme_or_size_or_by_keyboard(
    desk: Desk,
) -> None:
    with desk.own_page(color_scheme="light") as page:
        # Before a page's own scripts: sent once, and compiled once for all pages.
        page.add_init_script(AXE_SCRIPT)
        (alert,) = desk.client.get("/alerts").json()["alerts"]
        wrong: list[str] = []
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda sent: sent.url.startswith((desk.url, "data:")) or wrong.append(sent.url),
        )
        for address in (*PAGES, f"/console/alerts/{quote(alert['id'])}"):
            page.set_viewport_size(WIDE)
            page.emulate_media(color_scheme="light")
            page.goto(desk.url + address)
            walk(page, whole=address in WALKED)
            assert barriers(page) == [], address
            page.emulate_media(color_scheme="dark")
            assert barriers(page, "color-contrast") == [], address
            for width in NARROW:
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate(WIDER) == [], (address, width)
            assert wrong == [], address


WIDER = """async () => {
  const root = document.documentElement;
  // A chart takes its new width in one of the next frames.
  for (let frame = 0; root.scrollWidth > innerWidth && frame < 3600; frame++) await new Promise(requestAnimationFrame);
  if (root.scrollWidth > innerWidth) return ["the whole page"];
  for (const each of document.querySelectorAll("main details")) each.open = true;
  const wider = (part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).overflowX !== "visible";
  return [...document.querySelectorAll("main *:not(.unseen, thead)")].filter(wider).map((part) => part.outerHTML.slice(0, 200));
}"""
"""What has to be scrolled sideways, also in what can be opened."""


def test_no_page_scrolls_sideways_on_a_telephone_in_portuguese_with_its_longer_words(
    desk: Desk,
) -> None:
    for address in PAGES:
        page = desk.page(address, {"width": min(NARROW), "height": 800}, language="pt-BR")
        assert page.get_attribute("html", "lang") == "pt-BR"
        assert page.evaluate(WIDER) == [], address


def barriers(page: Any, *checks: str) -> list[Any]:
    """What axe, which is on the page, finds there, by these checks or by all that it has."""
    some = {"runOnly": {"type": "rule", "values": list(checks)}} if checks else {}
    options = {"resultTypes": ["violations"], **some}
    found: list[Any] = page.evaluate(
        "asked => axe.run(asked).then(found => found.violations)", options
    )
    return found


WALKED = (
    "/console",
    "/console/payments/bot-3",
    "/console/rules/gate/edit",
    "/console/lists/blocked",
)
"""Pages that are walked key by key: one of each kind of what Tab stops at."""
STOPS = """() => {
  const stops = "a[href], button, input, select, textarea, summary, [tabindex]";
  const here = (stop) => stop.checkVisibility() && !stop.disabled && stop.type !== "hidden";
  window.stops = [...document.querySelectorAll("#main :is(" + stops + ")")].filter(here);
  window.passed = new Set();
  document.addEventListener("focusin", ({ target }) => window.passed.add(target));
  const hidden = window.stops.filter((stop) => {
    stop.focus({ preventScroll: true });
    const seen = getComputedStyle(stop).outlineStyle !== "none";
    return document.activeElement !== stop || !seen || stop.tabIndex > 0;
  });
  window.passed.clear();
  return hidden.map((stop) => stop.outerHTML);
}"""
LEFT = "() => document.activeElement.closest('main') === null"
MISSED = (
    "() => window.stops.filter((stop) => !window.passed.has(stop)).map((stop) => stop.outerHTML)"
)


def walk(page: Any, *, whole: bool) -> None:
    """Past the menu by key to all that can be used, each of which shows that one is there, in its order;
    the `whole` page by Tab alone, and out again.
    """
    page.focus(".skip")
    page.keyboard.press("Enter")
    assert page.evaluate(STOPS) == [], page.url
    if not whole:
        return
    page.focus(".skip")
    page.keyboard.press("Enter")
    keeps_tab = page.locator(".editor-host").count()  # until Escape is pressed
    stops = page.evaluate("window.stops.length")
    for step in range(stops + 20):  # a field of a time has a stop for each of its parts
        if keeps_tab:
            page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        if step >= stops and page.evaluate(LEFT):
            break
    assert page.evaluate(LEFT), page.url
    assert page.evaluate(MISSED) == [], page.url


def test_an_analyst_goes_from_the_alarm_to_a_blocked_device_in_six_clicks(desk: Desk) -> None:
    page = desk.page(viewport=WIDE)
    assert "denied" in page.inner_text(".notice.alarm")
    page.click(".notice.alarm a")
    page.wait_for_url("**/console/payments?*")
    # Another test may have added some, also of another device.
    assert int(page.inner_text("#count").split()[0]) >= 25
    page.click("table.payments tbody tr[data-id^=bot-] a >> nth=0")
    page.wait_for_url("**/console/payments/*")
    assert "DENY" in page.inner_text("h1").upper()
    before, marked = marked_as_fraud(desk), page.url.rpartition("/")[2]
    page.keyboard.press("f")
    page.wait_for_selector(".notice.good")
    assert page.input_value("select[name=put]") == "device:blocked"
    with page.expect_navigation():
        page.click("form[action$='/list'] button")
    page.wait_for_selector(".notice.good")
    cheap = payment(id="bot-again", amount=5, device=BOT, analyze=ASKED)
    decided = desk.client.post("/payments", json=cheap).json()["payment"]["analyses"]
    assert decided["rule"]["condition"]["id"] == "known"
    body = {"entries": [{"value": "d-bot-7"}]}
    desk.client.request("DELETE", "/lists/blocked/entries", json=body)
    assert marked_as_fraud(desk) - before == {marked}
    page.goto(f"{desk.url}/console/payments/bot-1")
    page.keyboard.press("f")
    page.wait_for_selector(".notice.good button")
    assert "fraud" in page.inner_text("ol.timeline >> nth=0").lower()
    with page.expect_navigation():
        page.focus(".notice.good button")
        page.keyboard.press("Enter")
    assert marked_as_fraud(desk) - before == {marked}


def marked_as_fraud(desk: Desk) -> set[str]:
    wait_until_followed(desk.client)
    labels = desk.client.get("/labels").json()["labels"]
    return {each["payment"] for each in labels if each["label"] == "fraud"}


def test_a_rule_is_rolled_back_in_two_clicks_and_a_reason_and_brought_back_by_keyboard(
    desk: Desk,
) -> None:
    newer = RULE.replace("1000.00", "900.00")
    stored = desk.client.post("/rules/gate/versions?publish=true", content=newer)
    assert stored.status_code == 201, stored.text
    # Another test may have published some before.
    right = stored.json()["rule"]["version"]
    former = right - 1
    page = desk.page("/console/rules/gate")
    page.click(f"tr:has(form[action$='/active'] button[value='{former}']) summary")
    give_reason(page, "too strict")
    page.click("form[action$='/active'] button:visible")
    page.wait_for_url(f"**/console/rules/gate?active={former}")
    assert f"v{former} is live" in page.inner_text("header.tools")
    page.focus(f"tr:has(form[action$='/active'] button[value='{right}']) summary")
    page.keyboard.press("Enter")
    give_reason(page, "it was right")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/rules/gate?active={right}")
    assert [
        each["detail"]["reason"]
        for each in desk.client.get("/audit?action=activated&limit=2").json()["audit"]
    ] == [
        "it was right",
        "too strict",
    ]


def give_reason(page: Any, reason: str) -> None:
    """By keyboard, once the form is open and its field has the focus."""
    page.wait_for_selector("input[name=reason]:visible")
    page.keyboard.press("Tab")
    page.wait_for_selector("input[name=reason]:focus")
    page.keyboard.type(reason)


def test_an_attack_is_contained_from_the_alert_on_in_three_clicks(desk: Desk) -> None:
    page = desk.page("/console/alerts", viewport=WIDE)
    page.click("table.rows tbody tr:first-child a")
    page.wait_for_url("**/console/alerts/*")
    assert "Many payments" in page.inner_text("h1")
    picked = page.locator("input[name=pick]:checked")
    assert picked.count() == 1
    assert "Device" in page.locator("tr", has=picked).inner_text()
    page.fill("form[action='/console/contain'] input[name=reason]", "card testing")
    page.click("form[action='/console/contain'] button")
    page.wait_for_selector(".notice.good")
    assert "1 blocked until" in page.inner_text(".notice.good")
    assert "acknowledged" in page.inner_text("dl.facts")
    entries = desk.client.get("/lists/blocked/entries").json()["entries"]
    assert [(each["value"], each["note"]) for each in entries] == [("d-bot-7", "card testing")]
    cheap = payment(id="bot-contained", amount=5, device=BOT, analyze=ASKED)
    decided = desk.client.post("/payments", json=cheap).json()["payment"]["analyses"]
    assert decided["rule"]["condition"]["id"] == "known"
    shown = desk.client.get("/audit").json()["audit"]
    assert {"alert_marked", "entries_changed"} <= {each["action"] for each in shown}
    body = {"entries": [{"value": "d-bot-7"}]}
    desk.client.request("DELETE", "/lists/blocked/entries", json=body)


def test_an_attack_is_walked_through_from_the_alarm_to_the_report(desk: Desk) -> None:
    page = desk.page(viewport=WIDE)
    page.click(".notice.alarm a[href='/console/contain']")
    page.wait_for_url("**/console/contain")
    assert "Device" in page.locator("label:has(input[name=pick]:checked)").inner_text()
    page.fill("input[name=reason]", "card testing by one device")
    page.click("form[action='/console/contain'] button")
    page.wait_for_selector(".notice.good")
    for number in range(3):
        cheap = payment(id=f"walked-{number}", amount=5, device=BOT, analyze=ASKED)
        decided = desk.client.post("/payments", json=cheap).json()["payment"]["analyses"]
        assert decided["rule"]["condition"]["id"] == "known"
    wait_until_found(desk.client, 3, "id:walked-* condition:known")
    for key in ("g", "n"):
        page.keyboard.press(key)
    page.wait_for_url(f"{desk.url}/console")
    blocked = page.locator("tr", has_text="known").locator("td.number a")
    count = blocked.inner_text()
    blocked.click()
    page.wait_for_url("**/console/payments?*")
    assert page.inner_text("#count") == f"{count} payments"
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/console/payments/walked-2")
    assert "A device that an analyst has blocked" in page.inner_text("h1")
    page.keyboard.press("f")
    page.wait_for_selector(".notice.good")
    for key in ("g", "a"):
        page.keyboard.press(key)
    page.wait_for_url("**/console/alerts")
    page.click("table.rows tbody a >> nth=0")
    page.wait_for_url("**/console/alerts/*")
    page.fill("input[name=note]", "contained")
    page.click("button[name=state][value=closed]")
    page.wait_for_url("**/console/alerts/*?marked=1")
    page.wait_for_selector(".state.closed")
    wait_until_followed(desk.client)  # the report counts the verdict
    for key in ("g", "t"):
        page.keyboard.press(key)
    page.wait_for_url("**/console/report")
    row = page.locator("tr", has_text="known").last
    assert row.locator("td").nth(1).inner_text() == count
    assert int(row.locator("td").nth(3).inner_text()) >= 1
    assert "looked after: 1" in page.inner_text("main")
    id_ = desk.client.get("/alerts").json()["alerts"][0]["id"]
    reopened = {"alert": {"state": "open", "note": ""}}
    assert desk.client.put(f"/alerts/{id_}", json=reopened).status_code == 200
    entries = {"entries": [{"value": "d-bot-7"}]}
    desk.client.request("DELETE", "/lists/blocked/entries", json=entries)
    desk.client.delete("/payments/walked-2/labels/review")


def test_what_a_page_shows_as_curl_works_as_it_is_pasted(desk: Desk) -> None:
    addresses = (
        *PAGES,
        "/console/payments?q=action:deny",
        "/console/score?deny=0.9&challenge=0.4",
    )
    for address in addresses:
        page = desk.window.request.get(desk.url + address).text()
        (calls,) = re.findall(
            r'<details class="calls">.*?<code>(.*?)</code>', page, flags=re.DOTALL
        )
        shown = unescape(calls)
        assert shown.startswith("curl -s"), address
        script = shown.replace("https://YOUR-HOST", desk.url).replace("curl -s", "curl -sf")
        environment = {"PATH": os.environ["PATH"], "TOLL_KEY": desk.key}
        ran = subprocess.run(
            ["sh", "-ec", script], env=environment, capture_output=True, timeout=60, check=False
        )
        assert ran.returncode == 0, (address, shown)


def test_new_payments_come_in_while_one_looks(desk: Desk) -> None:
    page = desk.page("/console/payments?q=merchant:live")
    assert "No payment fits" in page.inner_text("main")
    first = payment(id="live-0", merchant={"id": "live"}, analyze=ASKED)
    desk.client.post("/payments", json=first)
    wait_until_found(desk.client, 1, "merchant:live")
    page.goto(f"{desk.url}/console/payments?q=merchant:live")
    # What comes before the box is ticked is shown too, and what came while it was not.
    for number in (1, 3):
        send_alike(desk, f"live-{number}", "live", f"d-live-{number}")
        wait_until_found(desk.client, number + 1, "merchant:live")
        page.check("#live")
        page.wait_for_selector(f'tr.fresh[data-id="live-{number}"]')
        send_alike(desk, f"live-{number + 1}", "live", f"d-live-{number + 1}")
        page.wait_for_selector(f'tr.fresh[data-id="live-{number + 1}"]')
        page.uncheck("#live")
    ids = [row.get_attribute("data-id") for row in page.locator("table.payments tbody tr").all()]
    assert ids == ["live-4", "live-3", "live-2", "live-1", "live-0"]


def send_alike(desk: Desk, id_: str, merchant: str, device: str) -> None:
    """A dear payment of a device that has no address, by another card than the attack's."""
    card = {"network": "visa", "presence": "card_not_present", "bin": "55000000"}
    body = payment(
        id=id_,
        merchant={"id": merchant},
        method={"type": "credit_card", "card": {**card, "last_four": "7777"}},
        device={"fingerprint": {"id": device, "provider": "basic"}},
        amount=5000,
        analyze=ASKED,
    )
    answer = desk.client.post("/payments", json=body)
    assert answer.status_code == 201, answer.text


READ_STREAM = """async ([address, count]) => {
  const reader = (await fetch(address)).body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (text.split("event: payment").length <= count) text += (await reader.read()).value;
  await reader.cancel();
  return text;
}"""


def test_live_rows_say_which_are_alike_without_naming_the_device(desk: Desk) -> None:
    page = desk.page("/console/payments?q=merchant:alike")
    place = page.get_attribute("table[data-place]", "data-place")
    for number, device in enumerate(("d-one", "d-one", "d-other")):
        send_alike(desk, f"alike-{number}", "alike", device)
    address = f"/console/payments/live?q=merchant:alike&after={place}"
    text = page.evaluate(READ_STREAM, [address, 3])
    first, second, third = re.findall(r'data-alike="(\w+)"', text)
    assert first == second != third
    assert "d-one" not in text


def test_payments_that_are_alike_stand_behind_the_first_of_them(desk: Desk) -> None:
    page = desk.page("/console/payments")
    row = page.locator("table.payments tbody tr").first.inner_html()
    begin = re.search(r'datetime="([^"]+)"', row)
    assert begin is not None
    sent = []
    for second, alike in ((0, "a"), (1, "a"), (2, "b"), (5, "a"), (6, "a"), (7, "a")):
        at = datetime.fromisoformat(begin[1]) + timedelta(seconds=second)
        own = row.replace(begin[1], at.isoformat())
        sent.append(
            f"event: payment\ndata: <tr data-id=like-{second} data-alike={alike}>{own}</tr>\n\n"
        )
    page.route(
        "**/console/payments/live*",
        lambda route: route.fulfill(content_type="text/event-stream", body="".join(sent)),
    )
    page.check("#live")
    page.wait_for_selector("tr[data-id=like-6]")
    shown = page.locator("table.payments tbody tr:is([data-id^=like], :has(button))")
    told = [each.get_attribute("data-id") or each.inner_text() for each in shown.all()]
    first, second = (f"{n} more like it within 5 seconds, of one device" for n in (1, 2))
    assert told == ["like-6", first, "like-2", "like-0", second]
    page.click(f"text={second}")
    ids = [each.get_attribute("data-id") for each in shown.all()]
    assert ids == ["like-6", None, "like-2", "like-0", None, "like-5", "like-1"]
    page.keyboard.press("Enter")
    assert shown.count() == 5


def test_a_live_feed_that_is_refused_says_so_and_goes_on_from_the_last_place_once_it_is_taken(
    desk: Desk,
) -> None:
    wait_until_followed(desk.client)
    with desk.own_page("/console/payments?q=id:back-*") as page:
        page.clock.install()
        page.route("**/console/payments/live*", lambda route: route.fulfill(status=503))
        page.check("#live")
        page.wait_for_selector("td.gap")
        assert "is interrupted" in page.inner_text("td.gap")
        missed = payment(id="back-1", amount=7, device=BOT, analyze=ASKED)
        assert desk.client.post("/payments", json=missed).status_code == 201
        page.unroute_all()
        page.clock.fast_forward(3_000)
        page.wait_for_selector('tr[data-id="back-1"]')
        assert page.locator('tr[data-id="back-1"]').count() == 1
        assert page.locator("td.gap").count() == 0


def test_the_first_page_says_how_old_it_is_when_no_answer_comes_and_asks_to_sign_in_again(
    desk: Desk,
) -> None:
    with desk.own_page(viewport=WIDE) as page:
        page.clock.install()
        page.reload()
        page.route(desk.url + "/console", lambda route: route.fulfill(status=503, body="<p>no"))
        page.clock.fast_forward(16_000)
        page.wait_for_selector("#now > .notice.error")
        assert "seconds old" in page.inner_text("#now > .notice.error")
        assert page.is_visible("#now .tiles")
        page.unroute_all()
        page.context.clear_cookies()
        page.clock.fast_forward(16_000)
        page.wait_for_url("**/console/sign-in?back=*")


def test_a_form_is_sent_once_however_often_its_button_is_pressed_and_says_that_it_waits(
    desk: Desk,
) -> None:
    with desk.own_page("/console/settings/keys") as page:
        before = len(desk.client.get("/keys").json()["keys"])
        page.fill("form:has(select[name=scope]) [name=name]", "pressed twice")
        page.evaluate(
            "() => { for (let n = 0; n < 2; n++) document.querySelector('select[name=scope]').form.querySelector('button').click(); }"
        )
        page.wait_for_selector("#secret")
        assert len(desk.client.get("/keys").json()["keys"]) == before + 1
        desk.show(page, "/console/settings")
        page.clock.install()
        held: list[Any] = []
        page.route("**/console/settings", lambda route: held.append(route))
        page.click("main form button")
        page.clock.fast_forward(1_500)
        page.wait_for_selector(".waits")
        assert "has not come yet" in page.inner_text(".waits")
        held[0].abort()
        page.wait_for_selector(".notice.error")
        assert page.locator(".waits").count() == 0


def test_the_row_that_is_read_stays_in_focus_and_in_view_however_many_come(desk: Desk) -> None:
    page = desk.page("/console/payments", viewport={"width": 1280, "height": 600})
    row = page.locator("table.payments tbody tr").first.inner_html()
    sent = []
    for tick in range(15):  # what 4,000 payments a second are to a browser within seven seconds
        sent.append('event: gap\ndata: {"skipped": 1980}')
        sent += [
            f'event: payment\ndata: <tr data-id="fast-{tick}-{number}">{row}</tr>'
            for number in range(20)
        ]
    body = "retry: 600000\n\n" + "\n\n".join(sent) + "\n\n"
    asked: list[Any] = []
    page.route("**/console/payments/live*", lambda route: asked.append(route))
    for _ in range(3):
        page.keyboard.press("j")
    read = page.evaluate("document.activeElement.closest('tr').dataset.id")
    with page.expect_request("**/console/payments/live*"):
        page.check("#live")
    page.evaluate(f"document.querySelector('tr[data-id=\"{read}\"] a').focus()")
    asked[0].fulfill(content_type="text/event-stream", body=body)
    page.wait_for_selector('tr[data-id="fast-14-19"]')
    assert page.evaluate("document.activeElement.closest('tr').dataset.id") == read
    page.wait_for_function(
        "() => { const { top, bottom } = document.activeElement.getBoundingClientRect();"
        " return top >= 0 && bottom <= innerHeight; }"
    )
    assert page.locator("table.payments tbody tr").count() <= 201
    assert page.locator("td.gap").first.inner_text() == "… 1\u202f980 more …"


def test_one_value_is_shown_in_its_place_and_the_others_stay_masked(desk: Desk) -> None:
    address = "/console/payments/person-5"
    page = desk.page(address)
    assert "u-5" in page.inner_text("dl.facts")
    page.click("button[name=field][value=ip]")
    page.wait_for_selector("#shown-ip")
    assert page.inner_text("#shown-ip") == "203.0.113.5"
    assert page.evaluate("document.activeElement.id") == "shown-ip"
    page.click("button[name=field][value=card]")
    page.wait_for_selector("#shown-card")
    assert page.inner_text("#shown-ip") == "203.0.113.5"
    assert page.url == desk.url + address
    log = desk.client.get("/audit").json()["audit"]
    shown = [each["detail"] for each in log if each["action"] == "personal_data_revealed"]
    assert shown == [{"field": "card"}, {"field": "ip"}]
    page.fill("textarea[name=text]", "called, no answer")
    page.click("form[action$='/notes'] button")
    page.wait_for_selector(".notes li")
    assert "called, no answer" in page.inner_text(".notes")


def test_pages_are_read_without_scripts(desk: Desk) -> None:
    page = desk.unscripted
    for address in PAGES[::3]:  # each is sent whole, and read as HTML elsewhere
        answer = page.goto(desk.url + address, wait_until="domcontentloaded")
        assert answer.status == 200
        assert page.inner_text("h1")
    desk.show(page, "/console/rules/gate/edit")
    assert "rule gate" in page.input_value("textarea[name=text]")


def test_keys_lead_to_every_page_and_to_a_row(desk: Desk) -> None:
    page = desk.page()
    for name, address, _ in reversed(NAVIGATION):
        page.keyboard.press("g")
        with page.expect_navigation(wait_until="commit"):
            page.keyboard.press(GO_KEYS[name])
        page.wait_for_url(desk.url + address, wait_until="domcontentloaded")
    page.goto(f"{desk.url}/console/payments")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/payments/*")
    page.keyboard.press("?")
    assert page.is_visible("dialog#keys")


def test_wide_amounts_in_several_currencies_leave_the_trend_in_view(desk: Desk) -> None:
    for number, currency in enumerate(("BRL", "MXN", "USD", "COP", "JPY")):
        wide = payment(
            id=f"wide-{number}",
            currency=currency,
            amount=999_999_999,
            device={"ip_address": f"192.0.2.{number}"},
            merchant={"id": "m-3"},
            analyze=ASKED,
        )
        assert desk.client.post("/payments", json=wide).status_code == 201
    wait_until_found(desk.client, 5, "merchant:m-3")
    page = desk.page("/console/rules/gate", viewport=WIDE)
    trends = page.locator("svg.spark").all()
    assert trends != []
    for trend in trends:
        box = trend.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 1280


def test_the_editor_tries_a_text_on_stored_payments_beside_it(desk: Desk) -> None:
    page = desk.page("/console/rules/gate/edit")
    page.wait_for_selector(".cm-content")
    page.wait_for_selector("#findings h2")
    page.click("button[formaction='/console/backtests']")
    page.wait_for_selector("#backtest p strong")
    assert "payments would be decided otherwise" in page.inner_text("#backtest")
    assert page.url.endswith("/edit")


def test_the_editor_underlines_what_is_wrong_and_lets_the_keyboard_out(desk: Desk) -> None:
    page = desk.page("/console/rules/gate/edit")
    page.click(".cm-content")
    page.keyboard.press("Control+End")
    page.keyboard.type('\n  condition odd "Odd" when amunt > 1 then deny')
    page.wait_for_selector(".cm-lintRange-error")
    page.wait_for_selector("#findings .error")
    assert "amunt" in page.inner_text("#findings")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id || document.activeElement.tagName") != "editor"
    assert not page.evaluate("document.activeElement.classList.contains('editor-host')")


@pytest.mark.parametrize("scripted", [True, False], ids=["with scripts", "without"])
def test_enter_in_a_field_beside_the_editor_publishes_the_text(desk: Desk, scripted: bool) -> None:
    wait_until_followed(desk.client)
    with desk.own_page("/console/rules/gate/edit", java_script_enabled=scripted) as page:
        page.fill("input[name=reason]", "quiet again")
        page.press("input[name=reason]", "Enter")
        page.wait_for_url("**/console/rules/gate?published=*")
    (last,) = desk.client.get("/audit", params={"action": "activated", "limit": 1}).json()["audit"]
    assert last["detail"]["reason"] == "quiet again"


def test_thresholds_are_moved_on_the_chart_and_shares_and_cost_follow(desk: Desk) -> None:
    wait_until_followed(desk.client)
    page = desk.page("/console/score", viewport=WIDE)
    sliders = page.locator("[role=slider]")
    sliders.first.wait_for()
    before = page.locator("#weighed dd").all_inner_texts()
    with page.expect_response("**/console/score?*"):
        sliders.first.focus()
        for key in ("Home", "PageUp", "PageDown", "ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
    assert page.input_value("#thresholds [name=challenge]") == "0.00"
    page.wait_for_selector("#weighed table")
    box, over = sliders.last.bounding_box(), page.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(over["x"] + over["width"] / 2, box["y"] + 80, steps=5)
    with page.expect_response("**/console/score?*"):
        page.mouse.up()
    assert page.input_value("#thresholds [name=deny]") == "0.50"
    page.wait_for_function("document.querySelector('#weighed').innerText.includes('0.50')")
    moved = page.locator("#weighed dd").all_inner_texts()
    assert moved != before
    page.goto(f"{desk.url}/console/score?challenge=0.00&deny=0.50")
    sliders.first.wait_for()
    assert page.locator("#weighed dd").all_inner_texts() == moved
    unscripted = desk.show(desk.unscripted, "/console/score?challenge=0.00&deny=0.50")
    assert unscripted.locator("#weighed dd").all_inner_texts() == moved
    unscripted.fill("#thresholds [name=deny]", "0.60")
    unscripted.click("#thresholds button")
    assert "0.60" in unscripted.inner_text("#weighed")


def test_a_chart_takes_the_colours_of_the_scheme_that_begins_while_one_looks(desk: Desk) -> None:
    page = desk.page(viewport=WIDE)
    drawn = []
    for scheme in ("light", "dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(".uplot canvas")
        page.evaluate("() => new Promise(requestAnimationFrame)")
        assert page.locator(".uplot").count() == 1
        drawn.append(page.evaluate("document.querySelector('.uplot canvas').toDataURL()"))
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]


def test_a_range_drawn_on_the_chart_becomes_the_search_for_its_payments(desk: Desk) -> None:
    page = desk.page(viewport=WIDE)
    page.wait_for_selector(".uplot .u-over")
    box = page.locator(".uplot .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 20, steps=5)
    page.mouse.up()
    page.wait_for_url("**/console/payments?q=since*until*")
    assert page.input_value("#search").startswith("since:")


def test_the_first_page_shows_itself_anew_but_not_under_the_hands_of_who_works_in_it(
    desk: Desk,
) -> None:
    with desk.own_page(viewport=WIDE) as page:
        page.clock.install()
        page.reload()
        page.wait_for_selector(".uplot")
        asked: list[str] = []
        page.on("request", lambda sent: sent.resource_type == "fetch" and asked.append(sent.url))
        with page.expect_response(f"{desk.url}/console"):
            page.clock.fast_forward(16_000)
        page.wait_for_selector(".uplot")
        asked.clear()
        page.click("#now details summary")
        page.clock.fast_forward(31_000)
        page.wait_for_load_state("networkidle")
        assert asked == []
        assert page.is_visible("#now details table")
        page.click("#now details summary")
        page.evaluate("document.activeElement.blur()")
        with page.expect_response(f"{desk.url}/console"):
            page.clock.fast_forward(16_000)


def test_a_search_is_in_the_address_and_a_reload_finds_the_same_rows(desk: Desk) -> None:
    page = desk.page("/console/payments")
    page.fill("#search", "merchant:m-2")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/payments?q=merchant*")
    rows = page.locator("tbody tr").all_inner_texts()
    assert len(rows) == 5
    page.reload()
    assert page.locator("tbody tr").all_inner_texts() == rows


def test_a_form_that_is_refused_stays_as_it_was_filled_in_below_the_reason(desk: Desk) -> None:
    page = desk.page("/console/settings")
    page.fill("input[name=retention_days]", "400")
    page.fill("input[name=time_zone]", "Mars/Base")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice.error")
    assert "Mars/Base" in page.inner_text(".notice.error")
    assert page.evaluate("document.activeElement.name") == "time_zone"
    assert page.input_value("input[name=retention_days]") == "400"
    page.fill("input[name=time_zone]", "UTC")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice.good")
    assert page.locator(".notice.error").count() == 0
    assert desk.client.get("/account").json()["account"]["retention_days"] == 400
    page.route("**/console/settings", lambda route: route.abort())
    page.fill("input[name=retention_days]", "500")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice.error")
    assert page.input_value("input[name=retention_days]") == "500"


def test_a_form_that_is_taken_asks_for_the_next_page_once(desk: Desk) -> None:
    page = desk.page("/console/settings")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    page.fill("input[name=retention_days]", "401")
    page.keyboard.press("Enter")
    page.wait_for_selector(".notice.good")
    assert [each for each in asked if "/console/settings" in each] == [
        f"POST {desk.url}/console/settings",
        f"GET {desk.url}/console/settings?saved=1",
    ]


def test_a_form_comes_back_as_it_was_typed_once_one_is_signed_in_again(desk: Desk) -> None:
    page = desk.page("/console/settings")
    page.fill("input[name=retention_days]", "402")
    page.set_checked("input[name=approve_lists]", checked=True)
    page.context.clear_cookies()
    page.press("input[name=time_zone]", "Enter")
    page.fill("input[name=key]", desk.key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/settings")
    assert page.input_value("input[name=retention_days]") == "402"
    assert page.is_checked("input[name=approve_lists]")
    page.reload()
    assert page.input_value("input[name=retention_days]") != "402"


def signed_in_again(page: Any, key: str, at: str) -> None:
    page.wait_for_selector("input[name=key]")
    page.fill("input[name=key]", key)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{at}")


def test_a_form_that_comes_back_is_seen_by_nobody_but_who_typed_it(desk: Desk) -> None:
    asked = {"key": {"scopes": ["admin"]}}
    other = desk.client.post("/keys", json=asked).json()["key"]["secret"]
    with desk.own_page("/console/settings") as page:
        page.fill("input[name=time_zone]", "Mars/Ana")
        page.context.clear_cookies()
        page.press("input[name=time_zone]", "Enter")
        signed_in_again(page, other, "/console/settings")
        assert page.input_value("input[name=time_zone]") != "Mars/Ana"
        assert "Mars/Ana" not in page.evaluate("JSON.stringify(sessionStorage)")
        page.context.clear_cookies()
        page.reload()
        signed_in_again(page, desk.key, "/console/settings")
        assert page.input_value("input[name=time_zone]") != "Mars/Ana"


def test_a_rules_text_comes_back_as_it_was_typed_once_one_is_signed_in_again(desk: Desk) -> None:
    with desk.own_page("/console/rules/gate/edit") as page:
        page.click(".cm-content")
        page.keyboard.press("Control+Home")
        page.keyboard.type("# typed before the end\n")
        expected = page.input_value("input[name=expected]")
        newer = desk.client.post("/rules/gate/versions", content=RULE + "# newer\n")
        assert newer.status_code == 201, newer.text
        page.context.clear_cookies()
        page.click("button[value=draft]")
        signed_in_again(page, desk.key, "/console/rules/gate/edit")
        page.wait_for_selector(".cm-content")
        assert "# typed before the end" in page.inner_text(".cm-content")
        assert page.input_value("#text").startswith("# typed before the end")
        # Somebody else was quicker: that is said, and not written over.
        assert page.input_value("input[name=expected]") == expected
        page.click("button[value=draft]")
        page.wait_for_selector("#refused .notice.error")
        assert page.url.endswith("/edit")
        assert "# newer" in page.inner_text("#refused")
        page.click("button[value=draft]")
        page.wait_for_url("**/console/rules/gate?published=*")


def test_the_printed_report_has_no_controls(desk: Desk) -> None:
    page = desk.page("/console/report")
    page.emulate_media(media="print")
    shown = page.locator("button:visible, input:visible, select:visible, nav a:visible")
    assert shown.count() == 0
    assert page.is_visible("table")


def test_verdicts_are_given_as_fast_as_keys_are_pressed_and_none_is_lost(desk: Desk) -> None:
    page = desk.page("/console/review")
    page.wait_for_selector("button:focus")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    rows = page.locator("table[data-verdicts] tbody tr")
    assert rows.count() == 20
    shown = [row.get_attribute("data-id") for row in rows.all()]
    refused = rows.first.get_attribute("data-id")
    page.route(f"**/console/review/{refused}", lambda route: route.fulfill(status=503))
    page.keyboard.press("j")
    page.keyboard.press("l")
    page.wait_for_selector(f'tr.refused[data-id="{refused}"]')
    assert "judge it again" in page.inner_text("#refused")
    assert rows.first.get_attribute("data-id") == refused
    assert rows.nth(1).get_attribute("aria-selected") == "true"
    page.unroute(f"**/console/review/{refused}")
    for _ in range(20):
        page.keyboard.press("l")
    assert rows.count() == 0
    while legitimate(desk, shown) < 20:  # a row goes before the service has answered
        page.wait_for_timeout(100)
    assert rows.count() == 0
    for _ in range(2):
        page.keyboard.press("z")
    page.keyboard.press("l")  # before the service has answered that it is taken back
    assert rows.count() == 1
    for _ in range(200):
        if len(taken_back(desk)) == 2 and legitimate(desk, shown) == 19:
            break
        page.wait_for_timeout(100)
    assert legitimate(desk, shown) == 19
    assert f"payment {rows.first.get_attribute('data-id')}" in taken_back(desk)


def taken_back(desk: Desk) -> list[str]:
    """Whose verdicts were taken back, as the audit log says, the latest first."""
    log = desk.client.get("/audit", params={"limit": 20}).json()["audit"]
    return [each["subject"] for each in log if each["action"] == "verdict_taken_back"]


def legitimate(desk: Desk, ids: list[str]) -> int:
    """How many of the payments have this label, read from each: the list of labels may be behind."""
    labels = [desk.client.get(f"/payments/{id_}/labels").json()["label"] for id_ in ids]
    return labels.count("legitimate")
