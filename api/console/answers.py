"""The console's responses (pages, redirects, streams), with a strict content security policy."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from urllib.parse import quote

from litestar.datastructures import Cookie
from litestar.response import Response, Stream

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
# Portuguese spreadsheets split lines at semicolons, and there the quotes of a cell are text.
_FORMULA = re.compile(r"(?<![^;\r\n])(?=[=+\-@\t\r])")
_OF_ADDRESSES = "%:/?#[]@!$&'()*+,;=-._~"
"""Characters that an address may contain unescaped (RFC 3986); a header accepts no others."""
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}


def html(text: str, status: int = 200) -> Response[str]:
    """Return a page."""
    return Response(text, status_code=status, media_type="text/html", headers=PAGE_HEADERS)


async def csv_file(
    name: str, titles: Sequence[str], pages: AsyncIterator[Iterable[Sequence[str]]]
) -> Stream:
    """Return a table as a file of that name, sent page by page, so that it may have any length.

    Cells are escaped, so that spreadsheets don't run formulas in them, whichever separator they
    expect. Raises what the first page raises; a later one that fails breaks the answer off, so that
    the browser reports an incomplete file.
    """
    first = [*await anext(pages, ())]

    async def lines() -> AsyncIterator[str]:
        yield _lines([titles, *first])
        async for rows in pages:
            yield _lines(rows)

    headers = {**PAGE_HEADERS, "content-disposition": f'attachment; filename="{name}.csv"'}
    return Stream(lines(), media_type="text/csv", headers=headers)


async def one_page(
    rows: Iterable[Sequence[str]],
) -> AsyncIterator[Iterable[Sequence[str]]]:
    """Yield the rows of a table that is at hand, for `csv_file`."""
    yield rows


def _lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([_no_formula(cell) for cell in row] for row in rows)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return _FORMULA.sub("'", cell)


def go_to(address: str) -> Response[str]:
    """Redirect to a page with GET, after a form was sent."""
    location = quote(address, safe=_OF_ADDRESSES)
    return Response("", status_code=303, headers={**PAGE_HEADERS, "location": location})


def session_cookie(token: str) -> Cookie:
    """Return the session's cookie; an empty token ends the session."""
    return _cookie(COOKIE, token)


def attempt_cookie(attempt: str) -> Cookie:
    """Return the cookie that identifies the browser in which a sign-in began; an empty one removes
    it.
    """
    return _cookie(ATTEMPT_COOKIE, attempt)


def _cookie(name: str, value: str) -> Cookie:
    # Lax, because people return from a provider's site.
    return Cookie(
        key=name,
        value=value,
        path="/",
        secure=True,
        httponly=True,
        samesite="lax",
        max_age=None if value else 0,
    )
