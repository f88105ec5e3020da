"""The client of the HTTP interface, for a merchant's backend (docs/integrate.md).

`Tollkeeper` waits for each answer, `AsyncTollkeeper` is awaited. `read_webhook` checks and reads
what a webhook was sent.
"""

from tollkeeper.api.client.callers import AsyncTollkeeper, Tollkeeper
from tollkeeper.api.client.calls import RequestError, UnansweredError
from tollkeeper.api.client.deliveries import SignatureError, read_webhook

__all__ = [
    "AsyncTollkeeper",
    "RequestError",
    "SignatureError",
    "Tollkeeper",
    "UnansweredError",
    "read_webhook",
]
