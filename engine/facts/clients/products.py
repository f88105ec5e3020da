"""Products that a User-Agent names, and the kind of client each one makes it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import re2  # type: ignore[import-untyped]

ClientKind = Literal["browser", "app", "library", "crawler", "headless", "unknown"]

# What the crawler list lacks, in RE2 syntax; the list itself has HeadlessChrome, Selenium and more.
HEADLESS = (
    r"(?i)\b(?:slimerjs|casperjs|htmlunit|zombie\.js|jsdom|happydom|cypress|testcafe|nightmare)/",
    r"(?i)\b(?:web-?driver|geckodriver|chromedriver|nodriver|puppeteer|playwright|selenium)",
)
# okhttp and its like are how apps speak HTTP (docs/language.md, "Derived fields").
APPS = (
    r"\bCFNetwork/",
    r"(?i)\bokhttp",
    r"\bDart/\d",
    r"^Dalvik/",
    r"\bAlamofire/",
    r"\bCronet/",
    r"^UnityPlayer/",
    r"(?i)^ktor[- ]client",
    r"(?i)\breact-?native\b",
)
_LIBRARIES = (
    r"(?i)^(?:node|node\.js|undici|deno|bun|ruby|php|java|perl|python|lua|julia|powershell)(?:/|$)",
    r"(?i)^(?:java-http-client|guzzlehttp|restsharp|reactornetty|jersey|unirest-java|feign)\b",
    r"(?i)^(?:google-http-java-client|spring-web|vert\.x-webclient|async-http-client|grpc-)",
    r"(?i)^(?:faraday|typhoeus|excon|http\.rb|rest-client|httparty|httpclient|symfony)\b",
    r"(?i)^(?:reqwest|hyper|ureq|fasthttp|resty|go-resty|lua-resty-http|curl_cffi|pycurl)\b",
    r"(?i)^(?:node-superagent|superagent|needle|request|urllib3|treq|tornado)/",
    r"(?i)^(?:postmanruntime|insomnia|bruno-runtime|httpie|thunder client|paw|hoppscotch)\b",
    r"(?i)^(?:k6|apache-jmeter|gatling|locust|artillery|vegeta|hey|wrk|ab|apachebench)/",
    r"(?i)\b(?:windowspowershell/|winhttp\b|libcurl-agent/|system\.net\.http)",
)

LINK_PREVIEWS = (r"^(?:WhatsApp|Viber)(?:/|$)",)
# Patterns of the list that people's browsers have too: messengers' and Facebook's own browsers,
# editors, phones named Butterfly and Sonic, an Android build, and the ends of other names.
PEOPLE = frozenset(
    {
        r"008\/",
        r"AP3A\.240617\.008",
        r"Butterfly",
        r"Code\/1\.",
        r"Fluid",
        r"MetaIAB Facebook",
        r"RED\/",
        r"Sonic",
        r"Trae\/",
        r"Viber",
        r"WhatsApp",
    }
)


@cache
def _product_table() -> tuple[Any, tuple[ClientKind, ...]]:
    """All patterns as one automaton, and the kind that each pattern means, strongest first."""
    patterns = re2.Set.SearchSet()
    kinds: list[ClientKind] = []
    for pattern, kind in _patterns():
        patterns.Add(pattern)
        kinds.append(kind)
    patterns.Compile()
    return patterns, tuple(kinds)


def _patterns() -> Iterator[tuple[str, ClientKind]]:
    # Only who reads a client needs the list, and loading it takes its time.
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # type: ignore[import-untyped]

    tagged = [
        (entry["pattern"], entry.get("tags", ()))
        for entry in CRAWLER_USER_AGENTS_DATA
        if entry["pattern"] not in PEOPLE
    ]
    yield from ((pattern, "headless") for pattern in HEADLESS)
    yield from ((pattern, "headless") for pattern, tags in tagged if "browser-automation" in tags)
    yield from ((pattern, "app") for pattern in APPS)
    yield from ((pattern, "library") for pattern in _LIBRARIES)
    yield from ((pattern, "library") for pattern, tags in tagged if "http-library" in tags)
    yield from ((pattern, "crawler") for pattern in LINK_PREVIEWS)
    yield from ((pattern, "crawler") for pattern, _ in tagged)


def product_kind(user_agent: str) -> ClientKind | None:
    """The kind of the strongest product that `user_agent` names, None when it names none we know.

    Takes time linear in the length of `user_agent`, which is ASCII.
    """
    patterns, kinds = _product_table()
    found = patterns.Match(user_agent)
    return kinds[min(found)] if found else None
