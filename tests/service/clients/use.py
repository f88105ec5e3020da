"""A payment, its update and an event, through the client that openapi-python-client writes."""

from __future__ import annotations

import json
import sys

from tollkeeper_client import AuthenticatedClient
from tollkeeper_client.api.events import submit_events
from tollkeeper_client.api.payments import create_payment, read_payment, update_payment
from tollkeeper_client.models import (
    CreationBody,
    EventAnswer,
    EventBody,
    PaymentAnswer,
    PaymentCreated,
    PaymentUpdated,
    UpdateBody,
)


def main(url: str, key: str) -> None:
    client = AuthenticatedClient(base_url=url, token=key)
    created = create_payment.sync(
        client=client,
        idempotency_key="order-1-create",
        body=CreationBody.from_dict(
            {
                "payment": {
                    "id": "py-1",
                    "type": "purchase",
                    "currency": "EUR",
                    "amount": 12.5,
                    "method": {"type": "credit_card"},
                    "merchant": {"id": "m-1"},
                    "analyze": {"bot_behaviour": True},
                }
            }
        ),
    )
    assert isinstance(created, PaymentCreated), created
    updated = update_payment.sync(
        created.payment.id,
        client=client,
        body=UpdateBody.from_dict({"payment": {"status": "failed"}}),
    )
    assert isinstance(updated, PaymentUpdated), updated
    known = read_payment.sync(created.payment.id, client=client)
    assert isinstance(known, PaymentAnswer), known
    event = submit_events.sync(
        client=client,
        body=EventBody.from_dict(
            {"event": {"type": "sign_in", "data": {"user_id": "u-1", "result": "failure"}}}
        ),
    )
    assert isinstance(event, EventAnswer), event
    behaviour = created.payment.analyses.bot_behaviour
    action = behaviour.action if behaviour else None
    sys.stdout.write(json.dumps([action, updated.payment.status, event.event.type_]))


main(*sys.argv[1:])
