"""The heading of the pages under Settings, which lead to one another."""

from __future__ import annotations

from tollkeeper.api.console.visit import Visit
from tollkeeper.api.html import Html, element, join_html

SETTINGS = "/console/settings"
USERS = "/console/settings/users"
KEYS_PAGE = "/console/settings/keys"
_PAGES = (
    (SETTINGS, "settings.account", "settings:read"),
    (USERS, "users.title", "users:read"),
    (KEYS_PAGE, "keys_page.title", "users:read"),
)


def settings_head(here: Visit, address: str) -> Html:
    """Return the heading of the page at `address`, with links to the others."""
    links = [
        element(
            "a",
            here.words(title),
            href=each,
            aria_current="page" if each == address else None,
        )
        for each, title, scope in _PAGES
        if here.may(scope)
    ]
    title = element("h1", here.words("frame.settings"))
    return join_html(title, element("p", *links, class_="choices") if len(links) > 1 else Html(""))
