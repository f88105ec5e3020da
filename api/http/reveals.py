"""`/v1/payments/{id}/reveals`: show one personal value in clear; the audit log records each."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from tollkeeper.api.http.bodies import read_json
from tollkeeper.api.http.errors import not_found
from tollkeeper.api.http.operation import Answer, Body, Example, operation
from tollkeeper.api.http.parameters import PaymentId
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import PAYMENTS
from tollkeeper.api.http.visibility import check_visible
from tollkeeper.engine.keep_accesses import note_reveal
from tollkeeper.engine.search.terms import Facet, entities_of, read_facts

MaskedField: TypeAlias = Literal["card", "email", "user", "ip", "device", "order"]

_FACETS: Final[dict[str, Facet]] = {name: Facet[name.upper()] for name in get_args(MaskedField)}


class WantedField(Struct, frozen=True, forbid_unknown_fields=True):
    """A field, by its name in the search."""

    field: MaskedField


class RevealBody(Struct, frozen=True, forbid_unknown_fields=True):
    reveal: WantedField


class RevealedField(Struct, frozen=True):
    payment: str
    field: MaskedField
    value: str


class RevealAnswer(Struct, frozen=True):
    reveal: RevealedField


@operation(
    "POST",
    "/v1/payments/{id:str}/reveals",
    "reveal_field",
    tag=PAYMENTS,
    summary="Show one personal value in clear",
    doc=(
        "For people who look at a masked payment. The audit log records who was shown which "
        "field of which payment, before it is shown. Of a card, the first 8 and last 4 "
        "digits are shown."
    ),
    scope="personal:read",
    of_merchants=True,
    sent=Body(RevealBody, {"email": Example("the e-mail", {"reveal": {"field": "email"}})}),
    answers={201: Answer("The value.", RevealAnswer)},
    refusals=(404, 503),
)
async def reveal_field(request: Request, id_: PaymentId) -> RevealAnswer:
    await check_visible(request, id_)
    wanted = (await read_json(request, RevealBody)).reveal.field
    engine, key = request.engine, request.key
    known = await engine.journal.first_and_last(key.account, id_)
    if known is None:
        raise not_found("id", "no payment has this id")
    values: dict[Facet, str] = dict(entities_of(read_facts(known[1])))
    value = values.get(_FACETS[wanted])
    if value is None:
        raise not_found("reveal.field", f"the payment has no `{wanted}`")
    await note_reveal(engine, key.account, key.id, id_, wanted)
    return RevealAnswer(RevealedField(id_, wanted, value))


ROUTES = (reveal_field,)
