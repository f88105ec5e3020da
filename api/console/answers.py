"""What the console sends: pages, ways on, and streams, under the strict policy."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from litestar.datastructures import Cookie
from litestar.response import Response

from tollkeeper.api.console.visit import ATTEMPT_COOKIE, COOKIE

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_OF_ADDRESSES = "%:/?#[]@!$&'()*+,;=-._~"
"""What stands in an address as it is (RFC 3986); a header takes nothing else."""
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}


def html(text: str, status: int = 200) -> Response[str]:
    """A page."""
    return Response(text, status_code=status, media_type="text/html", headers=PAGE_HEADERS)


def csv_file(name: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Response[str]:
    """A table as a file of that name, in which a spreadsheet reads no text of outside as a formula."""
    text = io.StringIO()
    out = csv.writer(text)
    out.writerow(titles)
    out.writerows([_no_formula(cell) for cell in row] for row in rows)
    headers = {**PAGE_HEADERS, "content-disposition": f'attachment; filename="{name}.csv"'}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def go_to(address: str) -> Response[str]:
    """Read that page now: what a form that was sent is answered with."""
    location = quote(address, safe=_OF_ADDRESSES)
    return Response("", status_code=303, headers={**PAGE_HEADERS, "location": location})


def session_cookie(token: str) -> Cookie:
    """The browser's session; an empty token ends it."""
    return _cookie(COOKIE, token)


def attempt_cookie(attempt: str) -> Cookie:
    """What tells the browser that began a sign-in; an empty one ends it."""
    return _cookie(ATTEMPT_COOKIE, attempt)


def _cookie(name: str, value: str) -> Cookie:
    # Lax, as people come back from a provider's site.
    return Cookie(
        key=name,
        value=value,
        path="/",
        secure=True,
        httponly=True,
        samesite="lax",
        max_age=None if value else 0,
    )
