"""Header sets that browsers, apps and programs send with a checkout request, by version.

Versions, brands and defaults are those of the products' releases; docs/scorecard.md, "Traffic",
lists the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

HeaderSet = Mapping[str, str]

_CHROMIUM = tuple(range(120, 143))
FIREFOX = (115, *range(128, 145))
SAFARI = ("16.6", "17.4", "17.5", "17.6", "18.0", "18.1", "18.3", "18.5", "18.6")
SAMSUNG = {23: 115, 24: 117, 25: 121, 26: 122, 27: 125, 28: 130}
OPERA = {110: 124, 112: 126, 114: 128, 116: 131, 118: 133}
LANGUAGES = {
    "BR": ("pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7", "pt-BR,pt;q=0.9", "pt-BR"),
    "MX": ("es-MX,es;q=0.9,en;q=0.8", "es-419,es;q=0.9", "es-MX"),
    "PT": ("pt-PT,pt;q=0.9,en;q=0.8", "pt-PT,pt;q=0.8,en;q=0.5,en-US;q=0.3"),
    "US": ("en-US,en;q=0.9", "en-US,en;q=0.5", "en-US,en;q=0.9,es;q=0.8"),
}
DESKTOPS = {
    "Windows": "Windows NT 10.0; Win64; x64",
    "macOS": "Macintosh; Intel Mac OS X 10_15_7",
    "Linux": "X11; Linux x86_64",
}
GREASE = (
    ('"Not_A Brand";v="8"', 0),
    ('"Not/A)Brand";v="8"', 0),
    ('"Not)A;Brand";v="99"', 0),
    ('"Not.A/Brand";v="24"', 2),
    ('"Not A(Brand";v="24"', 2),
)
FETCH = {
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Dest": "empty",
}
RECOMMENDED = ("User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Host")
"""The headers that merchants should send at least (docs/api.md, "Validation")."""

LIBRARIES: tuple[HeaderSet, ...] = (
    {
        "User-Agent": "python-requests/2.32.3",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate",
        "Connection": "keep-alive",
    },
    {"User-Agent": "python-httpx/0.27.2", "Accept": "*/*", "Accept-Encoding": "gzip, deflate, br"},
    {"User-Agent": "Python/3.12 aiohttp/3.10.5", "Accept": "*/*", "Accept-Encoding": "gzip, br"},
    {"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"},
    {"User-Agent": "Go-http-client/2.0", "Accept-Encoding": "gzip"},
    {
        "User-Agent": "axios/1.7.7",
        "Accept": "application/json, text/plain, */*",
        "Accept-Encoding": "gzip, compress, deflate, br",
    },
    {"User-Agent": "curl/8.7.1", "Accept": "*/*"},
    {"User-Agent": "GuzzleHttp/7"},
    {
        "User-Agent": "Java/17.0.12",
        "Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
    },
    {
        "User-Agent": "node",
        "Accept": "*/*",
        "Accept-Language": "*",
        "Sec-Fetch-Mode": "cors",
        "Accept-Encoding": "gzip, deflate",
    },
)
PARTNER: HeaderSet = {"User-Agent": "GuzzleHttp/7", "Accept": "application/json"}
"""The headers of a partner's server that calls the merchant for its own customers."""


def chromium(
    chance: Random, country: str, brand: str = "Google Chrome", phone: bool | None = None
) -> HeaderSet:
    """Chrome, Edge, Opera or Samsung Internet; a random device if `phone` is None."""
    handheld = chance.random() < 0.6 if phone is None else phone
    version = chance.choice(_CHROMIUM)
    own, suffix = str(version), ""
    match brand:
        case "Samsung Internet":
            release = chance.choice(list(SAMSUNG))
            version, own, handheld = SAMSUNG[release], f"{release}.0", True
        case "Opera":
            release = chance.choice(list(OPERA))
            version, own, handheld, suffix = (
                OPERA[release],
                str(release),
                False,
                f" OPR/{release}.0.0.0",
            )
        case "Microsoft Edge":
            handheld, suffix = False, f" Edg/{version}.0.0.0"
    platform = "Android" if handheld else chance.choices(list(DESKTOPS), (80, 15, 5))[0]
    system = "Linux; Android 10; K" if handheld else DESKTOPS[platform]
    inner = f"SamsungBrowser/{own} " if brand == "Samsung Internet" else ""
    mobile = "Mobile " if handheld else ""
    return {
        "Host": "shop.example",
        "User-Agent": f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"{inner}Chrome/{version}.0.0.0 {mobile}Safari/537.36{suffix}",
        "Accept": "application/json, text/plain, */*",
        "Accept-Encoding": "gzip, deflate, br, zstd" if version >= 123 else "gzip, deflate, br",
        "Accept-Language": chance.choice(LANGUAGES[country]),
        "sec-ch-ua": _brands(version, brand, own),
        "sec-ch-ua-mobile": "?1" if handheld else "?0",
        "sec-ch-ua-platform": f'"{platform}"',
        **FETCH,
    }


def firefox(chance: Random, country: str) -> HeaderSet:
    version = chance.choice(FIREFOX)
    system = chance.choice(
        ("Windows NT 10.0; Win64; x64", "X11; Linux x86_64", "Android 14; Mobile")
    )
    gecko = f"{version}.0" if "Android" in system else "20100101"
    return {
        "Host": "shop.example",
        "User-Agent": f"Mozilla/5.0 ({system}; rv:{version}.0) Gecko/{gecko} Firefox/{version}.0",
        "Accept": "application/json, text/plain, */*",
        "Accept-Encoding": "gzip, deflate, br, zstd" if version >= 126 else "gzip, deflate, br",
        "Accept-Language": LANGUAGES[country][-1],
        **FETCH,
    }


def safari(chance: Random, country: str, phone: bool = True) -> HeaderSet:
    version = chance.choice(SAFARI)
    system = (
        f"iPhone; CPU iPhone OS {version.replace('.', '_')} like Mac OS X"
        if phone
        else "Macintosh; Intel Mac OS X 10_15_7"
    )
    mobile = "Mobile/15E148 " if phone else ""
    webkit = "604.1" if phone else "605.1.15"
    return {
        "Host": "shop.example",
        "User-Agent": f"Mozilla/5.0 ({system}) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        f"Version/{version} {mobile}Safari/{webkit}",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate, br",
        "Accept-Language": LANGUAGES[country][1],
        **FETCH,
    }


def web_view(chance: Random, country: str) -> HeaderSet:
    """A page opened inside a social app."""
    if chance.random() < 0.5:
        system = chance.choice(("17_5", "17_6", "18_1", "18_5"))
        return {
            "Host": "shop.example",
            "User-Agent": f"Mozilla/5.0 (iPhone; CPU iPhone OS {system} like Mac OS X) "
            "AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/21F90 Instagram 340.0.2.26.109 "
            "(iPhone14,5; iOS 17_5; pt_BR; pt; scale=3.00; 1170x2532; 610000000)",
            "Accept": "*/*",
            "Accept-Encoding": "gzip, deflate, br",
            "Accept-Language": LANGUAGES[country][1],
        }
    version = chance.choice(_CHROMIUM)
    return {
        "Host": "shop.example",
        "User-Agent": "Mozilla/5.0 (Linux; Android 14; SM-A546E Build/UP1A.231005.007; wv) "
        "AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
        f"Chrome/{version}.0.6478.71 Mobile Safari/537.36",
        "Accept": "*/*",
        "Accept-Encoding": "gzip, deflate, br, zstd" if version >= 123 else "gzip, deflate, br",
        "Accept-Language": LANGUAGES[country][0],
        "X-Requested-With": "com.instagram.android",
    }


def app(chance: Random, country: str) -> HeaderSet:
    """A merchant's own app, as its HTTP library sends them."""
    build = f"{chance.randint(4, 9)}.{chance.randint(0, 40)}.{chance.randint(0, 3)}"
    language = LANGUAGES[country][0].split(",")[0]
    match chance.randrange(5):
        case 0:
            return {"User-Agent": f"okhttp/4.{chance.randint(9, 12)}.0", "Accept-Encoding": "gzip"}
        case 1:
            darwin = chance.choice(
                ("1494.0.7 Darwin/23.4.0", "1496.0.7 Darwin/23.5.0", "1568.200.51 Darwin/24.1.0")
            )
            return {
                "User-Agent": f"Loja/{build} CFNetwork/{darwin}",
                "Accept": "*/*",
                "Accept-Language": f"{language};q=1.0",
                "Accept-Encoding": "gzip, deflate, br",
            }
        case 2:
            return {
                "User-Agent": f"Dart/3.{chance.randint(2, 5)} (dart:io)",
                "Accept-Encoding": "gzip",
            }
        case 3:
            release = chance.choice(("17.5.1", "17.6", "18.1.1"))
            return {
                "User-Agent": f"EntregaJa/{build} (iPhone; iOS {release}; Scale/3.00)",
                "Accept": "application/json",
                "Accept-Language": language,
                "Accept-Encoding": "br;q=1.0, gzip;q=0.9, deflate;q=0.8",
            }
        case _:
            android = chance.randint(11, 15)
            return {
                "User-Agent": f"MinhaLoja/{build} (Android {android}; SM-S918B)",
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
            }


def browser(chance: Random, country: str) -> HeaderSet:
    """A person's browser, with about the market shares that shops see."""
    match chance.choices(range(8), (45, 20, 8, 8, 5, 6, 3, 5))[0]:
        case 0:
            return chromium(chance, country)
        case 1:
            return safari(chance, country)
        case 2:
            return safari(chance, country, phone=False)
        case 3:
            return chromium(chance, country, "Microsoft Edge")
        case 4:
            return firefox(chance, country)
        case 5:
            return chromium(chance, country, "Samsung Internet")
        case 6:
            return chromium(chance, country, "Opera")
        case _:
            return web_view(chance, country)


def phone_browser(chance: Random, country: str) -> HeaderSet:
    """A browser on a phone."""
    match chance.choices(range(4), (50, 30, 10, 10))[0]:
        case 0:
            return chromium(chance, country, phone=True)
        case 1:
            return safari(chance, country)
        case 2:
            return chromium(chance, country, "Samsung Internet")
        case _:
            return web_view(chance, country)


def alter_headers(chance: Random, headers: HeaderSet) -> HeaderSet:
    """Alter a person's headers as a User-Agent switcher does, so that they may contradict each
    other.
    """
    name = chromium(chance, "US", phone=False)["User-Agent"]
    return {**headers, "User-Agent": name}


def headless(chance: Random, country: str) -> HeaderSet:
    """An automated browser: unmodified, or with its name changed but its client hints missing."""
    headers = dict(chromium(chance, country, phone=False))
    headers["sec-ch-ua"] = headers["sec-ch-ua"].replace("Google Chrome", "HeadlessChrome")
    if chance.random() < 0.6:
        headers["User-Agent"] = headers["User-Agent"].replace(" Chrome/", " HeadlessChrome/")
    return headers


def copy_headers(chance: Random, country: str) -> HeaderSet:
    """A browser's name on a program's headers, or parts of two browsers in one set."""
    name = chromium(chance, country)["User-Agent"]
    match chance.randrange(6):
        case 0:
            return {**chromium(chance, country), "User-Agent": name}
        case 1:
            return {**firefox(chance, country), "sec-ch-ua": _brands(124, "Google Chrome", "124")}
        case 2:
            return {"User-Agent": name, "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        case 3:
            return {**LIBRARIES[-1], "User-Agent": name}
        case 4:
            return {**LIBRARIES[5], "User-Agent": name}
        case _:
            return {**chromium(chance, country, phone=False), "sec-ch-ua-platform": '"Android"'}


def forward_headers(headers: HeaderSet, forwards: str) -> HeaderSet:
    """Return the headers that a merchant forwards: `all`, the `recommended` ones, or the `name`
    alone.
    """
    match forwards:
        case "all":
            return headers
        case "recommended":
            return {name: headers[name] for name in RECOMMENDED if name in headers}
        case _:
            return {"User-Agent": headers["User-Agent"]}


def _brands(version: int, brand: str, own: str) -> str:
    grease, at = GREASE[version % len(GREASE)]
    brands = [f'"Chromium";v="{version}"', f'"{brand}";v="{own}"']
    brands.insert(at, grease)
    return ", ".join(brands)
