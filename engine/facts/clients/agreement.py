"""Where headers contradict the User-Agent or each other, one law to a function.

A law speaks of values that were sent and never of a header that wasn't, so leaving a header out
can't break one. Hop-by-hop headers (RFC 9110, 7.6.1) tell of the last proxy and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tollkeeper.engine.facts.clients.user_agent import Claim

# The earliest major version that can send it: experiments, extended support releases and
# privacy modes that report an older version are allowed for.
CLIENT_HINTS_SINCE = 84
FETCH_METADATA_SINCE = {"chromium": 76, "gecko": 78, "webkit": 16}
CODINGS_SINCE = {
    "br": {"chromium": 49, "gecko": 38, "webkit": 11},
    "zstd": {"chromium": 117, "gecko": 115, "webkit": 18},
}
CODINGS = ("gzip", "deflate", "sdch", "br", "zstd", "dcb", "dcz")
CLIENT_HINTS = (
    "sec-ch-ua",
    "sec-ch-ua-full-version-list",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
)
FETCH_METADATA = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user")
DOCUMENTS = frozenset({"document", "iframe", "frame"})

BRAND = re.compile(r'"(Chromium|Google Chrome|HeadlessChrome)";\s*v="(\d{1,4})')
# "Desktop site" on Android claims Linux, and Android apps run on Chrome OS.
PLATFORMS = {
    "windows": {"windows"},
    "macos": {"macos", "ios"},
    "ios": {"ios"},
    "android": {"android", "linux", "chrome os", "chromium os"},
    "linux": {"linux", "android", "chrome os", "chromium os"},
    "chromeos": {"chrome os", "chromium os", "linux", "android"},
}
JAVA_ACCEPT = "text/html, image/gif, image/jpeg, *; q=.2"

_Headers = Mapping[str, str]
Law = Callable[[Claim, _Headers], bool]


def is_consistent(claim: Claim, sent: _Headers) -> bool:
    """Whether nothing that was `sent` contradicts the claim; names in lower case, ASCII values."""
    return not any(broken(claim, sent) for broken in LAWS)


def brands(sent: _Headers) -> list[tuple[str, int]]:
    """The Chromium brands in the client hints, each with its major version."""
    lists = (sent.get("sec-ch-ua", ""), sent.get("sec-ch-ua-full-version-list", ""))
    return [(brand, int(version)) for text in lists for brand, version in BRAND.findall(text)]


def another_chromium_is_branded(claim: Claim, sent: _Headers) -> bool:
    """Brands and User-Agent come from one Chromium; Firefox and Safari have none.

    Source: User-Agent Client Hints, `Sec-CH-UA`; MDN compatibility data, `Sec-CH-UA`.
    """
    return claim.engine is not None and any(version != claim.release for _, version in brands(sent))


def another_browser_is_branded(claim: Claim, sent: _Headers) -> bool:
    """Edge is branded "Microsoft Edge", never "Google Chrome"; a headless Chrome says so in both.

    Source: Microsoft Edge documentation, `Sec-CH-UA`.
    """
    names = {name for name, _ in brands(sent)}
    return (claim.browser == "edge" and "Google Chrome" in names) or (
        claim.kind == "browser" and claim.engine is not None and "HeadlessChrome" in names
    )


def hints_are_too_new(claim: Claim, sent: _Headers) -> bool:
    """Chromium sends client hints since version 89, in experiments since 84.

    Source: MDN compatibility data, `Sec-CH-UA`.
    """
    return claim.engine == "chromium" and _older(claim, CLIENT_HINTS_SINCE, sent, CLIENT_HINTS)


def mobile_is_denied(claim: Claim, sent: _Headers) -> bool:
    """A phone says `Mobile` and `?1`; Windows, macOS and Chrome OS never say `?1`.

    Source: User-Agent Client Hints, `Sec-CH-UA-Mobile`. Tablets and "desktop site" may say either.
    """
    if claim.engine != "chromium":
        return False
    mobile = sent.get("sec-ch-ua-mobile")
    if claim.mobile:
        return mobile == "?0"
    return mobile == "?1" and claim.os in {"windows", "macos", "chromeos"}


def another_platform_is_hinted(claim: Claim, sent: _Headers) -> bool:
    """The platform hint is the system that the User-Agent names.

    Source: User-Agent Client Hints, `Sec-CH-UA-Platform`. Values that we don't know are not judged.
    """
    if claim.engine is None or claim.os not in PLATFORMS:
        return False
    hinted = sent.get("sec-ch-ua-platform", "").strip('" ').lower()
    return hinted not in PLATFORMS[claim.os] and any(
        hinted in those for those in PLATFORMS.values()
    )


def fetch_metadata_is_too_new(claim: Claim, sent: _Headers) -> bool:
    """`Sec-Fetch-*` is sent since Chromium 76, Firefox 90 and Safari 16.4.

    Source: MDN compatibility data, `Sec-Fetch-Mode`.
    """
    if claim.engine is None:
        return False
    return _older(claim, FETCH_METADATA_SINCE[claim.engine], sent, FETCH_METADATA)


def fetch_metadata_is_impossible(claim: Claim, sent: _Headers) -> bool:
    """Only a navigation has a user's activation, and a document is only fetched by one.

    Source: Fetch Metadata Request Headers, 2.1-2.4.
    """
    mode = sent.get("sec-fetch-mode")
    if claim.engine is None or mode not in {"cors", "no-cors", "websocket"}:
        return False
    return "sec-fetch-user" in sent or sent.get("sec-fetch-dest") in DOCUMENTS


def a_document_is_not_accepted(claim: Claim, sent: _Headers) -> bool:
    """A browser that navigates to a document accepts `text/html`.

    Source: Fetch Standard, "fetching", default `Accept` of navigations.
    """
    return (
        claim.engine is not None
        and sent.get("sec-fetch-dest") in DOCUMENTS
        and "accept" in sent
        and "text/html" not in sent["accept"].lower()
    )


def java_accepts(claim: Claim, sent: _Headers) -> bool:
    """This `Accept` is the default of Java's HttpURLConnection and of no browser.

    Source: OpenJDK, sun.net.www.protocol.http.HttpURLConnection.
    """
    return claim.engine is not None and sent.get("accept", "").startswith(JAVA_ACCEPT)


def any_language_is_accepted(claim: Claim, sent: _Headers) -> bool:
    """A browser names languages; `*` alone is the default of Node's fetch.

    Source: undici, lib/web/fetch/index.js. Other values can be set by a page's script.
    """
    return claim.engine is not None and sent.get("accept-language", "").strip() == "*"


def codings_are_not_a_browsers(claim: Claim, sent: _Headers) -> bool:
    """Browsers list known codings without weights, gzip first; Chromium and Gecko keep one order.

    Source: Chromium net/url_request/url_request_http_job.cc; Firefox `network.http.accept-encoding`.
    """
    codings = _codings(sent)
    if claim.engine is None or not codings:
        return False
    if any(coding not in CODINGS for coding in codings):
        return True
    order = [CODINGS.index(coding) for coding in codings]
    if claim.engine == "webkit":
        order = [place for place in order if place < 2]
    return order != sorted(order)


def a_coding_is_too_new(claim: Claim, sent: _Headers) -> bool:
    """br came with Chromium 50, Firefox 44, Safari 11; zstd with Chromium 123, Firefox 126.

    Source: MDN compatibility data, `Content-Encoding`; both could be switched on earlier.
    """
    if claim.engine is None or claim.version is None:
        return False
    codings = _codings(sent)
    return any(
        coding in codings and claim.version < since[claim.engine]
        for coding, since in CODINGS_SINCE.items()
    )


LAWS: tuple[Law, ...] = (
    another_chromium_is_branded,
    another_browser_is_branded,
    hints_are_too_new,
    mobile_is_denied,
    another_platform_is_hinted,
    fetch_metadata_is_too_new,
    fetch_metadata_is_impossible,
    a_document_is_not_accepted,
    java_accepts,
    any_language_is_accepted,
    codings_are_not_a_browsers,
    a_coding_is_too_new,
)


def _older(claim: Claim, since: int, sent: _Headers, names: tuple[str, ...]) -> bool:
    return claim.version is not None and claim.version < since and not sent.keys().isdisjoint(names)


def _codings(sent: _Headers) -> list[str]:
    """The codings as sent, none when a content delivery network has put its own list in place.

    Every browser lists both gzip and deflate; what networks send onwards is without deflate.
    """
    codings = [coding.strip().lower() for coding in sent.get("accept-encoding", "").split(",")]
    listed = {coding.partition(";")[0].strip() for coding in codings}
    return codings if {"gzip", "deflate"} <= listed else []
