"""The frame of every page: head, navigation, keyboard shortcuts, and the page's calls as curl."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import lru_cache

from tollkeeper.api.console.assets import asset_address
from tollkeeper.api.console.client import MadeCall
from tollkeeper.api.console.visit import Visit
from tollkeeper.api.console.words import Words
from tollkeeper.api.html import Html, element, join_html

NAVIGATION = (
    ("now", "/console", "payments:read"),
    ("payments", "/console/payments", "personal:read"),
    ("review", "/console/review", "personal:read"),
    ("alerts", "/console/alerts", "payments:read"),
    ("rules", "/console/rules", "rules:read"),
    ("lists", "/console/lists", "lists:read"),
    ("score", "/console/score", "payments:read"),
    ("report", "/console/report", "payments:read"),
    ("changes", "/console/changes", "rules:read"),
    ("settings", "/console/settings", "settings:read"),
)
"""Each page's name, its address, and the scope that it requires."""
COUNTED_PAGES = ("alerts", "changes")
"""Pages whose link shows how many items wait."""
_BELOW = {
    "/console/contain": "/console/alerts",
    "/console/came-back": "/console/report",
    "/console/new-rule": "/console/rules",
    "/console/backtests": "/console/rules",
}
"""Pages whose address is not below that of the page in the menu to which they belong."""
GO_KEYS = {
    "now": "n",
    "payments": "p",
    "review": "v",
    "alerts": "a",
    "rules": "r",
    "lists": "l",
    "score": "s",
    "report": "t",
    "changes": "c",
    "settings": "e",
}
"""The key that opens a page, after `g`."""
STYLES = ("vendor/uplot.css", "console.css")
CHART_SCRIPTS = ("vendor/uplot.js", "charts.js")
"""What a page with charts needs, in this order."""
_PUBLIC = "https://YOUR-HOST"


def page(visit: Visit, title: str, *content: str, scripts: Iterable[str] = ()) -> Html:
    """Return a whole page for a person who is signed in."""
    words = visit.words
    body = element(
        "body",
        element("a", words("frame.skip"), href="#main", class_="skip"),
        _header(visit),
        element("main", *content, id="main", tabindex="-1"),
        element(
            "footer",
            _calls(words, visit.client.calls),
            element("p", words("frame.zone", zone=visit.zone.key)),
            class_="foot",
        ),
        _keys(words, tuple(name for name, _, scope in NAVIGATION if _is_open(visit, name, scope))),
    )
    return document(words, title, body, ("console.js", "vendor/htmx.js", *scripts))


def first_page(visit: Visit) -> str:
    """Return the address of the first page that the person may open; `/console/score` is open to
    all.
    """
    has = [address for name, address, scope in NAVIGATION if _is_open(visit, name, scope)]
    return has[0] if has else "/console/score"


def _is_open(visit: Visit, name: str, scope: str) -> bool:
    return visit.may(scope) and visit.sees(name)


def document(words: Words, title: str, body: Html, scripts: Iterable[str] = ()) -> Html:
    """Return a whole HTML document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element(
            "meta", name="htmx-config", content='{"history":false,"includeIndicatorCSS":false}'
        ),
        element("title", f"{title} · Tollkeeper"),
        element("link", rel="icon", href="data:,"),
        *(element("link", rel="stylesheet", href=asset_address(style)) for style in STYLES),
        *(element("script", src=asset_address(script), defer="") for script in scripts),
    )
    # Scripts write figures as the page does, and say when no answer came.
    signs = {
        "data_thousands": words("frame.thousands"),
        "data_point": words("frame.point"),
        "data_failed": words("error.failed"),
        "data_stale": words("now.stale"),
        "data_waits": words("frame.waits"),
    }
    return join_html(
        Html("<!doctype html>\n"), element("html", head, body, lang=words.language, **signs)
    )


def _header(visit: Visit) -> Html:
    words = visit.words
    links = [
        element(
            "a",
            words(f"frame.{name}"),
            _waiting(name) if name in COUNTED_PAGES else "",
            href=address,
            aria_current="page" if _is_here(visit.path, address) else None,
            data_page=name,
            data_go=GO_KEYS[name],
        )
        for name, address, scope in NAVIGATION
        if _is_open(visit, name, scope)
    ]
    return element(
        "header",
        element("a", "Tollkeeper", href="/console", class_="brand"),
        element("nav", *links, aria_label=words("frame.pages")),
        element(
            "form",
            element(
                "span",
                f"{visit.account} · {visit.owner}",
                class_="who",
                data_person=f"{visit.account} {visit.owner}",
            ),
            element("button", words("frame.sign_out"), class_="quiet"),
            method="post",
            action="/console/sign-out",
            class_="account",
        ),
        class_="top",
    )


def _waiting(name: str) -> Html:
    """Show how many items wait on a page. Queried once per page: polling would keep an idle session
    alive.
    """
    return element(
        "span",
        class_="waiting",
        hx_get=f"/console/waiting/{name}",
        hx_trigger="load",
        hx_swap="innerHTML",
    )


def _is_here(path: str, address: str) -> bool:
    own = next((menu for below, menu in _BELOW.items() if path.startswith(below)), path)
    return own == address or (address != "/console" and own.startswith(address + "/"))


def _calls(words: Words, calls: Iterable[MadeCall]) -> Html:
    lines = "\n".join(map(_curl, calls))
    return element(
        "details",
        element("summary", words("frame.calls")),
        element("p", words("frame.calls_note")),
        element("pre", element("code", lines), tabindex="0"),
        class_="calls",
    )


def _curl(call: MadeCall) -> str:
    parts = ["curl", "-s"]
    if call.method != "GET":
        parts += ["-X", call.method]
    parts += [shlex.quote(_PUBLIC + call.target), "-H", '"Authorization: Bearer $TOLL_KEY"']
    if call.body:
        media_type = shlex.quote(f"Content-Type: {call.media_type}")
        parts += ["-H", media_type, "--data-binary", shlex.quote(call.body.decode())]
    return " ".join(parts)


# A third of what a page's frame takes, and the same for all who may see the same pages.
@lru_cache(128)
def _keys(words: Words, pages: tuple[str, ...]) -> Html:
    to_pages = [(("g", GO_KEYS[name]), words(f"frame.{name}")) for name in pages]
    rows = [
        element(
            "div", element("dt", *(element("kbd", key) for key in keys)), element("dd", meaning)
        )
        for keys, meaning in (
            (("/",), words("keys.search")),
            *to_pages,
            (("j", "k"), words("keys.rows")),
            (("Enter",), words("keys.open")),
            (("f", "l", "u"), words("keys.verdict")),
            (("z",), words("keys.undo")),
            (("←", "→"), words("keys.threshold")),
            (("PgUp", "PgDn"), words("keys.threshold_far")),
            (("Home", "End"), words("keys.threshold_ends")),
            (("Esc", "Tab"), words("keys.leave")),
            (("?",), words("keys.help")),
        )
    ]
    return element(
        "dialog",
        element("h2", words("keys.title"), id="keys-title"),
        element("dl", *rows),
        element("form", element("button", words("frame.close")), method="dialog"),
        id="keys",
        aria_labelledby="keys-title",
    )
