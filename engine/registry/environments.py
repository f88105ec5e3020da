"""What an account's programs read beside the payment, from its state and its lists' contents."""

from __future__ import annotations

from collections.abc import Mapping
from zoneinfo import ZoneInfo

from tollkeeper.engine.lists.contents import Contents, ListContents, TableContents
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.registry.settings import scaled_rates
from tollkeeper.engine.registry.state import Account


def account_environment(account: Account, contents: Mapping[str, Contents]) -> Environment:
    """The account's picture; `contents` are its lists and tables by name.

    Made anew when the account has changed: folding a change of it gives another `Account`.
    """
    return Environment(
        lists={name: held for name, held in contents.items() if isinstance(held, ListContents)},
        tables={name: held for name, held in contents.items() if isinstance(held, TableContents)},
        rates=scaled_rates(account.settings),
        time_zone=ZoneInfo(account.settings.time_zone),
    )
