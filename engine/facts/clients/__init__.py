"""Facts about a client, read from the HTTP headers it sent: what it is, and whether they agree.

`user_agent.py` says what the User-Agent claims, `agreement.py` what contradicts the claim,
`client.py` puts both together. What is decided from what, and why: docs/clients.md.
"""

from tollkeeper.engine.facts.clients.client import Client, Clients, read_client
from tollkeeper.engine.facts.clients.products import ClientKind

__all__ = ["Client", "ClientKind", "Clients", "read_client"]
