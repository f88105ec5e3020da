"""Searches of payments that an account's people share, by name."""

from __future__ import annotations

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.registry.changes import SearchDropped, SearchSaved
from tollkeeper.engine.registry.errors import Conflict, Invalid, NotFound
from tollkeeper.engine.registry.state import Account

MAX_SEARCHES = 50
MAX_SEARCH_NAME = 64
MAX_SEARCH_TEXT = 500


def save_search(account: Account, name: str, query: str) -> SearchSaved | None:
    """None when that changes nothing. Raises `Invalid`, `Conflict` when there are too many."""
    violations = []
    for field, text, most in (("name", name, MAX_SEARCH_NAME), ("query", query, MAX_SEARCH_TEXT)):
        if not text.strip() or len(text) > most or not text.isprintable():
            message = f"this is a line of text of 1 to {most} characters"
            violations.append(Violation(f"search.{field}", "invalid_format", message))
    if violations:
        raise Invalid(violations)
    if name not in account.searches and len(account.searches) >= MAX_SEARCHES:
        raise Conflict("search", f"an account has at most {MAX_SEARCHES} saved searches")
    return None if account.searches.get(name) == query else SearchSaved(name, query)


def drop_search(account: Account, name: str) -> SearchDropped:
    """Raises `NotFound`."""
    if name not in account.searches:
        raise NotFound("search", f"there is no search `{name}`")
    return SearchDropped(name)
