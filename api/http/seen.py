"""What a user who sees some merchants alone may read: nothing of another merchant's payments, and of
the lists those that the account shows them.
"""

from __future__ import annotations

from tollkeeper.api.http.errors import not_found
from tollkeeper.api.http.request import Request
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.lists import find_list
from tollkeeper.engine.registry.state import ListState
from tollkeeper.engine.search.terms import read_facts


async def check_payment(request: Request, payment_id: str) -> None:
    """Raises `Problem` 404 for an id that no payment has, or none that the user sees."""
    key = request.key
    if key.merchants:
        await check_seen(request, payment_id)
    elif not await request.engine.journal.exists(key.account, Kind.PAYMENT, payment_id):
        raise not_found("id", "no payment has this id")


async def check_seen(request: Request, payment_id: str) -> None:
    """Raises `Problem` 404, as for an id that no payment has, for one of another merchant."""
    key = request.key
    if not key.merchants:
        return
    known = await request.engine.journal.first_and_last(key.account, payment_id)
    if known is None or read_facts(known[1]).payment.merchant.id not in key.merchants:
        raise not_found("id", "no payment has this id")


def is_list_seen(request: Request, name: str) -> bool:
    """Whether who asks may read the list."""
    return not request.key.merchants or name in request.account.settings.merchant_lists


def find_seen_list(request: Request, name: str) -> ListState:
    """Raises `NotFound` for a list that there is not, or that who asks may not read."""
    if not is_list_seen(request, name):
        raise NotFound("list", f"there is no list `{name}`")
    return find_list(request.account, name)
