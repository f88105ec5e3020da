"""The groups of operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PAYMENTS: Final = "Payments"
LABELS: Final = "Labels"
FIGURES: Final = "Figures"
EVENTS: Final = "Events"
RULES: Final = "Rules"
SCORECARDS: Final = "Scorecards"
EVENT_TYPES: Final = "Event types"
DEFINITIONS: Final = "Definitions"
BACKTESTS: Final = "Backtests"
LISTS: Final = "Lists"
ACCOUNT: Final = "Account"
ACCESS: Final = "Access"
SERVICE: Final = "Service"

TAGS: Final[Mapping[str, str]] = {
    PAYMENTS: "Report payments, read what was decided about them, and why.",
    LABELS: "What became known of payments afterwards, by source: fraud, legitimate, unsure.",
    FIGURES: "Exact counts of what was decided and what became of it.",
    EVENTS: "Report what happens besides payments, and read what monitors made of it.",
    RULES: "What turns a payment into an action: versions, published, rolled back, tried.",
    SCORECARDS: "What turns a payment into a score; the account's is `bot_behaviour`.",
    EVENT_TYPES: "What events hold: their fields, metrics and monitors.",
    DEFINITIONS: "What other files share with `use`.",
    BACKTESTS: "What a version would have changed, tried on stored history.",
    LISTS: "What rules look values up in.",
    ACCOUNT: "Settings, the audit log, and where alerts are sent.",
    ACCESS: "Who may sign in, as what, and their sessions.",
    SERVICE: "Health, figures, and this description.",
}
"""Each group, in the document's order, with its purpose."""
