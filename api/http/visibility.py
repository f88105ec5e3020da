"""What a user who is limited to some merchants may read: no other merchant's payments, and only the
lists that the account shows to such users.
"""

from __future__ import annotations

from tollkeeper.api.http.errors import not_found
from tollkeeper.api.http.request import Request
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.registry.lists import find_list
from tollkeeper.engine.registry.state import ListState
from tollkeeper.engine.search.terms import read_facts


async def check_visible_payment(request: Request, payment_id: str) -> None:
    """Raise `Problem` 404 unless there is such a payment and the user may see it."""
    key = request.key
    if key.merchants:
        await check_visible(request, payment_id)
    elif not await request.engine.journal.exists(key.account, Kind.PAYMENT, payment_id):
        raise not_found("id", "no payment has this id")


async def check_visible(request: Request, payment_id: str) -> None:
    """Raise `Problem` 404, as for an unknown id, for a payment of another merchant."""
    key = request.key
    if not key.merchants:
        return
    known = await request.engine.journal.first_and_last(key.account, payment_id)
    if known is None or read_facts(known[1]).payment.merchant.id not in key.merchants:
        raise not_found("id", "no payment has this id")


def is_list_visible(request: Request, name: str) -> bool:
    """Whether the requester may read the list."""
    return not request.key.merchants or name in request.account.settings.merchant_lists


def find_visible_list(request: Request, name: str) -> ListState:
    """Find a list. Raises `NotFound` if it doesn't exist, or if the requester may not read it."""
    if not is_list_visible(request, name):
        raise NotFound("list", f"there is no list `{name}`")
    return find_list(request.account, name)
