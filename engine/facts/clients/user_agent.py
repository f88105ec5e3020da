"""What a User-Agent claims: the kind of client, its browser and system, and the engine inside."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from tollkeeper.engine.facts.clients.products import ClientKind, product_kind

if TYPE_CHECKING:
    import ua_parser

BrowserEngine = Literal["chromium", "gecko", "webkit"]

_FAMILIES = {
    "Apple Mail": "webview",
    "Chrome Mobile WebView": "webview",
    "HeadlessChrome": "chrome",
    "MiuiBrowser": "miui",
    "Mobile Safari": "safari",
    "Mobile Safari UI/WKWebView": "webview",
    "Opera Mini": "opera",
    "Opera Touch": "opera",
    "Samsung Internet": "samsung",
}
SUFFIXES = (" ios", " mobile", " browser")
SYSTEMS = {
    "Arch Linux": "linux",
    "CentOS": "linux",
    "Chrome OS": "chromeos",
    "Debian": "linux",
    "Fedora": "linux",
    "Gentoo": "linux",
    "Kubuntu": "linux",
    "Linux Mint": "linux",
    "Mac OS X": "macos",
    "Red Hat": "linux",
    "SUSE": "linux",
    "Ubuntu": "linux",
    "Web0S": "webos",
    "openSUSE": "linux",
}
# Other browsers name engines and versions that aren't theirs, which proves nothing.
JUDGED = frozenset({"chrome", "edge", "firefox", "opera", "safari", "samsung"})
NAME_LENGTH = 32

BROWSER_START = re.compile(r"(?:Mozilla|Opera|UCWEB)/")
MOBILE = re.compile(r"\bMobile\b")
_CHROMIUM = re.compile(r"\b(?:Headless)?Chrome/(\d{1,4})")
CHROMIUM_ON_IOS = re.compile(r"\b(?:CriOS|EdgiOS)/(\d{1,4})")
GECKO = re.compile(r"\bFirefox/(\d{1,4})")
WEBKIT = re.compile(r"\bVersion/(\d{1,4})|\bCPU (?:iPhone )?OS (\d{1,4})_")


class Claim(Struct, frozen=True, gc=False):
    """What a User-Agent says of its sender.

    `engine` is None where we don't know what headers to expect, `version` the engine's major
    version. `release` is the major version of Chromium that the browser was released with.
    """

    kind: ClientKind = "unknown"
    browser: str | None = None
    os: str | None = None
    engine: BrowserEngine | None = None
    version: int | None = None
    release: int | None = None
    mobile: bool = False


def claim(user_agent: str) -> Claim:
    """The claim of `user_agent`, bounded ASCII text; of an empty one, that nothing is known."""
    if not user_agent:
        return Claim()
    parsed = _parser()(user_agent)
    family = parsed.user_agent.family if parsed.user_agent else None
    os = _system(parsed.os.family) if parsed.os else None
    kind = _kind(user_agent, family, os)
    if family is None or kind not in {"browser", "headless"}:
        return Claim(kind, os=os)
    browser = _browser(family)
    engine, version = _engine(user_agent, os) if browser in JUDGED else (None, None)
    release = version if engine == "chromium" else _number(CHROMIUM_ON_IOS, user_agent)
    mobile = MOBILE.search(user_agent) is not None
    return Claim(kind, browser, os, engine, version, release, mobile)


@cache
def _parser() -> Callable[[str], ua_parser.PartialResult]:
    """What reads families and systems; loaded for the first that is read, as it takes its time."""
    import ua_parser

    users, systems, _ = ua_parser.load_lazy_builtins()
    resolver = ua_parser.BestAvailableResolver((users, systems, []))
    wanted = ua_parser.Domain.USER_AGENT | ua_parser.Domain.OS
    return lambda user_agent: resolver(user_agent, wanted)


def _kind(user_agent: str, family: str | None, os: str | None) -> ClientKind:
    kind = product_kind(user_agent)
    if kind is not None:
        return kind
    if BROWSER_START.match(user_agent):
        return "browser" if family is not None else "unknown"
    return "app" if os is not None else "unknown"


def _engine(user_agent: str, os: str | None) -> tuple[BrowserEngine | None, int | None]:
    chromium = _number(_CHROMIUM, user_agent)
    if chromium is not None:
        # Edge up to 18 names a Chrome that it is not.
        return (None, None) if " Edge/" in user_agent else ("chromium", chromium)
    gecko = _number(GECKO, user_agent)
    if gecko is not None and " Gecko/" in user_agent:
        return "gecko", gecko
    if os in {"ios", "macos"}:
        return "webkit", _number(WEBKIT, user_agent)
    return None, None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(found[found.lastindex or 0]) if found else None


def _browser(family: str) -> str:
    name = family.lower()
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return _FAMILIES.get(family) or name[:NAME_LENGTH]


def _system(family: str) -> str:
    return SYSTEMS.get(family) or family.lower()[:NAME_LENGTH]
