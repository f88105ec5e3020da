"""The parameters of a filter of payments, for all operations that take one."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar, get_args, get_type_hints

from tollkeeper.api.http.parameters import FLAG, MOMENT, SEVERAL, query_parameter, whole
from tollkeeper.api.http.request import Request
from tollkeeper.engine.decision import Action
from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.labels.label import SOURCES, VERDICTS
from tollkeeper.engine.search.filters import (
    MOST_VERSION,
    NAMES,
    Filter,
    read_filter,
    read_members,
    within_merchants,
)

T = TypeVar("T")

_WRITTEN: Final = {"type": "string", "minLength": 1}
_TEXT: Final = {**_WRITTEN, "maxLength": 256}
_SCORE: Final = {"type": "number", "minimum": 0, "maximum": 1}
_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS: Final = {
    "anyOf": [
        {"type": "string", "format": "ipv4"},
        {"type": "string", "format": "ipv6"},
        {"type": "string", "pattern": rf"^({_OCTET}\.){{3}}0/24$"},
        {"type": "string", "pattern": "^[1-9a-f][0-9a-f]{0,3}(:[1-9a-f][0-9a-f]{0,3}){0,2}::/48$"},
    ]
}
_MEMBER: Final = rf'(({"|".join(sorted(NAMES))}):("([^"\\]|\\.)+"|[^\s"]+))'
MEMBERS: Final = {"type": "string", "pattern": rf"^\s*{_MEMBER}(\s+{_MEMBER})*\s*$"}
"""A filter in its text form."""


def _choice(*choices: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*choices]}


_DESCRIBED: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "q": (
        (
            "The whole filter as text, `name:value` by `name:value`, a value with spaces in quotes; "
            "joins the other parameters."
        ),
        MEMBERS,
        "action:deny bin:470200 since:1h",
    ),
    "since": (
        "Only what arrived at this instant or later; or a span back from now, such as `1h`.",
        MOMENT,
        "1h",
    ),
    "until": ("Only what arrived before this instant, or before a span back.", MOMENT, "10m"),
    "action": ("What was recommended.", _choice(*get_args(Action), "none"), "deny"),
    "rule": ("The rule that was applied, `none` for no rule.", _TEXT, "checkout"),
    "version": (
        "The version of the rule that was applied.",
        whole(1, MOST_VERSION),
        "7",
    ),
    "condition": ("The condition that was met, `none` for none of the rule's.", _TEXT, "card_list"),
    "score_from": ("Only scores of at least this.", _SCORE, "0.5"),
    "score_to": ("Only scores of at most this.", _SCORE, "0.85"),
    "holdout": (
        "Whether it passed though it is denied, as the account's `holdout` says.",
        FLAG,
        "true",
    ),
    "status": ("The payment's status now.", _choice(*get_args(PaymentStatus)), "declined"),
    "label": ("What became known of the payment.", _choice(*VERDICTS, "none"), "fraud"),
    "labelled": (
        "A source of labels and what it said of the payment, whatever others said.",
        _choice(*(f"{source}:{verdict}" for source in SOURCES for verdict in VERDICTS)),
        "chargeback:fraud",
    ),
    "merchant": ("The merchant's id.", _TEXT, "m-1"),
    "currency": ("The currency's code.", _TEXT, "EUR"),
    "card": ("The card's fingerprint: its first 8 and last 4 digits.", _TEXT, "41111111-1111"),
    "bin": (
        "The first 6 or 8 digits of the card number.",
        {"type": "string", "pattern": "^([0-9]{6}|[0-9]{8})$"},
        "470200",
    ),
    "device": ("The id of the device's fingerprint.", _TEXT, "d-1"),
    "ip": (
        (
            "The device's address, the backend's where there is none; or its network, /24 of IPv4 "
            "and /48 of IPv6."
        ),
        _ADDRESS,
        "203.0.113.0/24",
    ),
    "user": ("The user's id.", _TEXT, "u-1"),
    "email": ("The user's e-mail address.", _TEXT, "ana@shop.example"),
    "order": ("The order's id.", _TEXT, "order-1001"),
    "id": ("The payment's id, or its beginning followed by `*`.", _TEXT, "order-1001-*"),
}


def with_filter(
    handler: Callable[..., Awaitable[T]],
) -> Callable[..., Awaitable[T]]:
    """Add all parameters of a filter to a handler, which gets the filter as `wanted`.

    A repeated parameter matches any of its values. The filter is limited to the merchants that the
    requester sees. Raises `Invalid`.
    """

    async def run(request: Request, **given: str | None) -> T:
        own = {name: given[name] for name in given if name not in _DESCRIBED}
        return await handler(request, wanted=_filter(request), **own)

    parameters = inspect.signature(handler).parameters
    types = get_type_hints(handler, include_extras=True)
    types.pop("wanted")
    added = {
        name: Annotated[str | None, query_parameter(doc, schema, example), SEVERAL]
        for name, (doc, schema, example) in _DESCRIBED.items()
    }
    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            *(each for name, each in parameters.items() if name == "request"),
            *(inspect.Parameter(n, keyword, default=None, annotation=t) for n, t in added.items()),
            *(
                each.replace(kind=keyword, annotation=types[name])
                for name, each in parameters.items()
                if name not in ("request", "wanted")
            ),
        ],
        return_annotation=types["return"],
    )
    run.__annotations__ = {**types, **added}
    run.__name__, run.__doc__, run.__module__ = (
        handler.__name__,
        handler.__doc__,
        handler.__module__,
    )
    return run


def _filter(request: Request) -> Filter:
    members = []
    for name, text in request.query_params.multi_items():
        if name == "q":
            members += read_members(str(text))
        elif name in NAMES:
            members.append((name, str(text)))
    wanted = read_filter(members, request.engine.clock())
    return within_merchants(wanted, request.key.merchants)
