"""Types and names in words, and guesses at what an author meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from tollkeeper.grammar import types as t

_KINDS: dict[type, str] = {
    t.Boolean: "true or false",
    t.Number: "a number",
    t.String: "text",
    t.Ip: "an IP address",
    t.Instant: "a point in time",
    t.Duration: "a length of time",
    t.Record: "a group of fields",
    t.Headers: "the headers as a whole",
    t.Metadata: "metadata",
    t.Collection: "a collection",
}


def kind_of(of: t.Type) -> str:
    """Return the kind of a type in the author's terms."""
    return _KINDS[type(of)]


def shorten(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters, with a mark where it was cut."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


_MAX_CHOICES = 12
"""Longer choices are lists of codes, which nobody reads in full."""

_TYPES: dict[type, str] = {
    t.Boolean: "boolean",
    t.String: "string",
    t.Ip: "ip",
    t.Instant: "instant",
    t.Duration: "duration",
    t.Record: "record",
    t.Headers: "headers",
    t.Metadata: "metadata",
    t.Collection: "collection",
}


def type_in_words(of: t.Type) -> str:
    """Return a type as the reference shows it, with its bounds or choices."""
    match of:
        case t.Number(low=None, high=None):
            return "number"
        case t.Number(scale=scale, low=low, high=high):
            decimals = f", {scale} decimals" if scale else ""
            least = "" if low is None else f" from {low:,}"
            most = "" if high is None else f" to {high:,}"
            return f"number{least}{most}{decimals}"
        case t.String(choices=tuple(choices)) if len(choices) > _MAX_CHOICES:
            return f"one of {len(choices)} codes"
        case t.String(choices=tuple(choices)):
            return " | ".join(f'"{choice}"' for choice in choices)
        case _:
            return _TYPES[type(of)]


_MOST_CANDIDATES = 500
_LONGEST = 64


def likely_word(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `word` was most likely meant to be, ignoring case: the only one of
    which it is the first word, or the most similar one.

    Comparing two words takes quadratic time, so long words are skipped, and only the first of very
    many candidates are tried.
    """
    if len(word) > _LONGEST:
        return None
    short = (each for each in islice(candidates, _MOST_CANDIDATES) if len(each) <= _LONGEST)
    by_folded = {candidate.casefold(): candidate for candidate in short}
    folded = word.casefold()
    begun = [each for each in by_folded if each.startswith(f"{folded}_")]
    if len(begun) == 1:
        return by_folded[begun[0]]
    close = get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """Return the help that names the likely candidate, or None."""
    likely = likely_word(word, candidates)
    return f"did you mean `{likely}`?" if likely is not None else None


GIVEN_BY_NAME = "name it: `let tries = …`, which the condition reads and the test gives"
"""What to do about a computed value that a test is to give."""


def listed(words: Iterable[str]) -> str:
    """Return `a`, `b` or `c`, each in backticks."""
    quoted = [f"`{word}`" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


_ACTIONS_MEANT = {
    **dict.fromkeys(("allow", "allowed", "approve", "approved", "accept", "pass"), "allow"),
    **dict.fromkeys(("permit", "ok", "continue", "proceed"), "allow"),
    **dict.fromkeys(("challenge", "challenged", "review", "verify", "manual_review"), "challenge"),
    **dict.fromkeys(
        ("request_3ds", "require_3ds", "step_up", "mfa", "captcha", "hold"), "challenge"
    ),
    **dict.fromkeys(("deny", "denied", "block", "blocked", "decline", "declined"), "deny"),
    **dict.fromkeys(("reject", "rejected", "refuse", "refused", "stop", "ban"), "deny"),
}
"""Actions of other systems, in lower case."""


def action_meant(word: str) -> str | None:
    """Return the action that a word stands for, in this language or another."""
    return _ACTIONS_MEANT.get(word.lower())
