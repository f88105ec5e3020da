"""Habits of other rule languages: whole lines, what stands around an action, and promises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tollkeeper.grammar import habit_errors as say
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.words import action_meant

if TYPE_CHECKING:
    from tollkeeper.grammar.blame import Place

_ACTIONS: Final = ("allow", "challenge", "deny")
_LONGEST_NAME: Final = 40
_FAR: Final = 300
"""How many characters of a line are looked at."""
_PART = r"(?:[^\"#\n]|\"[^\"\n]*\")"
_IF = r"(?:if|when|whenever|IF|If|WHEN|When)\b"
_BEGINS_WITH_IF = re.compile(rf"(?:else\s+|el)?{_IF}:?\s*")
_BEGINS_WITH_ACTION = re.compile(rf"(\w+)[ \t]+{_IF}:?\s*")
_ENDS_WITH_ACTION = re.compile(r"(?:=>|->|:|,|\bthen\b:?|\bTHEN\b)\s*(?:then\s+)?(\w+)\Z")
_BEGINS: Final = frozenset({"when", "else", "not", *_ACTIONS})
"""Words of the language with which people begin a rule of one line."""
_CLOSES: Final = frozenset({"else", "default", "otherwise", "finally"})
_TEXT = re.compile(r"\"[^\"\\\n]*\"")
_REST = re.compile(rf"{_PART}*")
_ELSE = re.compile(r"(?:else|otherwise|ELSE)\s*:?\s*(\w+)")
_WITH_REASONS: Final = frozenset({"with", "by", "for", "of"})
"""Words of the language that also begin a reason."""
_WORD = re.compile(r"\s*(\w+)")
_WORDY = re.compile(
    r"(?:(?:set|return|do|take|the|RETURN|SET)\s+)*(?:action\b\s*)?(?:(?:=|:|is\b)\s*)?\"?(\w+)\"?"
)
_ASK_MORE = re.compile(
    r"(?:(?:request|require|trigger)[ _])?3d-?s(?:ecure)?\b|(?:manual|human)[ _]review\b|step[-_ ]up\b",
    re.IGNORECASE,
)
_ARROW = re.compile(r"(?:=>|->|:|,|\{)\s*(?:then\s+)?(\w+)")
_PROMISE = re.compile(
    r"(?:(?P<how>never|always|not)\s+)?(?P<actions>\w+(?:(?:\s*,\s*|\s+or\s+)\w+)*)\s+"
    r"(?:when|if)\s+(?P<asked>.+)"
)
_HOW = re.compile(
    r"(?:(?:is|are|should|must|can|will)\s+)?(?:be\s+)?(never|always|not)\s+(?:be\s+)?(\w+)"
)
_BE = re.compile(r"(?:be|get|return|give)\s+(\w+)")


def habit_of_rule(place: Place) -> Diagnostic | None:
    """Return the diagnostic if a known habit explains the place."""
    for question in (
        _after_action,
        _promise,
        _first_line,
        rule_in_a_line,
        _nameless,
        _second_when,
        _arrow,
        _wordy_action,
    ):
        if diagnostic := question(place):
            return diagnostic
    return None


def _line_at(place: Place) -> str:
    """What is left of the line, up to a bound."""
    end = place.text.find("\n", place.start, place.start + _FAR)
    return place.text[place.start : end if end >= 0 else place.start + _FAR]


def _after_action(place: Place) -> Diagnostic | None:
    """`then deny "too risky"`, `then deny because …`, `then deny when …`."""
    previous = place.previous
    if previous is None or previous.kind not in ("ALLOW", "CHALLENGE", "DENY", "DEFAULT"):
        return None
    if place.item not in ("condition", "otherwise", "must") or place.begins_line or not place.found:
        return None
    if text := _TEXT.match(_line_at(place)):
        return _text_after_action(place, Span(previous.span.end, place.start + text.end()), text[0])
    if place.found == ".":
        return say.needless_stop(place.span)
    if place.item == "condition" and (more := _more_after_action(place, previous.span.end)):
        return more
    if not place.found[0].isalpha() or place.found in place.reserved - _WITH_REASONS:
        return None
    rest = _REST.match(_line_at(place))
    end = place.start + len(rest[0].rstrip()) if rest else place.span.end
    is_condition = place.item == "condition"
    whole = Span(previous.span.end, end)
    return say.words_after_action(place.span, whole, is_condition=is_condition)


def _text_after_action(place: Place, whole: Span, text: str) -> Diagnostic:
    if place.item != "condition" or place.name is None:
        return say.text_after_action(place.span, whole, text, None, is_condition=False)
    name = place.name.span.end
    has_title = place.text[name : name + _FAR].lstrip().startswith('"')
    title = None if has_title else name
    return say.text_after_action(place.span, whole, text, title, is_condition=True)


def _more_after_action(place: Place, end: int) -> Diagnostic | None:
    """`then deny else allow`, `then deny, allow` and `then deny when …`."""
    if other := _ELSE.match(_line_at(place)):
        whole = Span(end, place.start + other.end())
        return say.else_after_action(place.span, whole, action_meant(other[1]))
    following = _WORD.match(place.text, place.span.end, place.span.end + _FAR)
    is_second = place.found in (",", "and", "&", "&&", "or") and following is not None
    if is_second and following and action_meant(following[1]):
        return say.second_action(Span(place.start, following.end()))
    if place.found in ("when", "if", "unless"):
        return say.condition_after_action(place.span)
    return None


def _promise(place: Place) -> Diagnostic | None:
    """`must … then allow`, `must … not deny`, `must never deny when …`."""
    if place.item != "must":
        return None
    line = _said(place)
    if place.takes("WHEN") and (whole := _PROMISE.fullmatch(line)):
        words = re.findall(r"\w+", whole["actions"])
        actions = [action_meant(each) or "" for each in words if each != "or"]
        how = "always" if whole["how"] in (None, "always") else "never"
        correction = f"when {whole['asked']} {how} {', '.join(actions)}"
        span = Span(place.start, place.start + whole.end())
        return say.promise_in_order(place.span, span, correction) if all(actions) else None
    if place.takes("NUMBER"):
        return None
    if place.found == "then":
        return say.promise_with_then(place.span)
    if place.takes("ALLOW") and (be := _BE.match(line)) and (action := action_meant(be[1])):
        return say.promise_in_words(Span(place.start, place.start + be.end()), action)
    said = _HOW.match(line)
    if said and (action := action_meant(said[2])) and not place.takes("ALLOW"):
        word = "always" if said[1] == "always" else "never"
        return say.promise_in_words(Span(place.start, place.start + said.end()), f"{word} {action}")
    if (action := action_meant(place.found)) and not place.takes("ALLOW"):
        return say.promise_in_words(place.span, f"always {action}")
    return None


def _first_line(place: Place) -> Diagnostic | None:
    """A rule in one line where the file's own first line is missing."""
    if not place.takes("RULE") or _rule_in(place) is None:
        return None
    return say.missing_header(place.span, "condition", "rule")


def rule_in_a_line(place: Place) -> Diagnostic | None:
    """Return the diagnostic for `if amount > 100 then deny`, `block if :risk_score: > 65` or `amount >
    100: deny`, with the fix that replaces it up to its end.
    """
    if place.kind != "rule" or not place.takes("CONDITION") or not place.begins_line:
        return None
    found = _rule_in(place)
    if found is None:
        return None
    line, asked, action = found
    correction = f"condition {_name_for(asked, action)} when {asked} then {action}"
    return say.line_as_condition(place.span, Span(place.start, place.start + len(line)), correction)


def _rule_in(place: Place) -> tuple[str, str, str] | None:
    """The rest of a line that reads as a rule, what it asks, and its action."""
    line, word = _said(place), place.found.lower()
    asked, action = _asked(line)
    is_known = word in place.reserved and word not in _BEGINS
    if not asked or action is None or is_known or word in _CLOSES - {"else"} or asked in _CLOSES:
        return None
    return line, asked, action


def _asked(line: str) -> tuple[str, str | None]:
    """What a line asks, and the action that it gives, if it reads as a rule."""
    begun = _BEGINS_WITH_IF.match(line)
    if ended := _ENDS_WITH_ACTION.search(line):
        asked = line[begun.end() if begun else 0 : ended.start()].strip()
        is_one = not {"then", "when"} & set(asked.split())
        return asked if is_one else "", action_meant(ended[1])
    if first := _BEGINS_WITH_ACTION.match(line):
        return line[first.end() :], action_meant(first[1])
    return "", None


def _name_for(asked: str, action: str) -> str:
    """Make a name for a condition, of its action and what it asks."""
    words = re.findall(r"[a-z0-9]+", asked[:_LONGEST_NAME].lower())
    return "_".join([action, *words])[:_LONGEST_NAME].rstrip("_")


def _said(place: Place) -> str:
    """What the rest of a line says, without a comment and what ends a sentence."""
    said = _REST.match(_line_at(place))
    return said[0].rstrip(" \t\r;.") if said else ""


def _nameless(place: Place) -> Diagnostic | None:
    """`condition when …`."""
    if place.item != "condition" or place.accepted != {"NAME"} or place.found not in ("when", "if"):
        return None
    asked, action = _asked(_said(place))
    return say.condition_without_name(place.span, _name_for(asked, action or "my"))


def _second_when(place: Place) -> Diagnostic | None:
    is_second = place.item == "condition" and place.found == "when" and place.takes("THEN")
    return say.second_when(place.span) if is_second and not place.begins_line else None


def missing_when(place: Place) -> Diagnostic | None:
    """Return the diagnostic for `condition big amount > 100 then deny`."""
    if place.item != "condition" or not place.stray or place.touches:
        return None
    if not place.takes("WHEN") or place.takes("NUMBER"):
        return None
    asked, action = _asked(_said(place))
    return say.missing_word_when(place.span) if asked and action else None


def _arrow(place: Place) -> Diagnostic | None:
    """`when … => deny`, `when …: deny` and `when … deny`."""
    if place.item != "condition" or not place.takes("THEN"):
        return None
    line = _line_at(place)
    if (arrow := _ARROW.match(line)) and (action := action_meant(arrow[1])):
        span = Span(place.start, place.start + arrow.end())
        return say.missing_word_then(place.span, span, f"{' ' * place.touches}then {action}")
    word = _WORD.match(line)
    is_action = place.found in _ACTIONS or (place.stray and action_meant(place.found))
    if is_action and word and not place.takes("NUMBER"):
        return say.missing_word_then(place.span, place.span, f"then {action_meant(place.found)}")
    return None


def _wordy_action(place: Place) -> Diagnostic | None:
    """`then action = "deny"`, `then return deny`."""
    if not place.takes("ALLOW") or place.takes("NUMBER") or place.found in ("", ":", "="):
        return None
    if place.found in ("alert", "notify") and place.item == "condition":
        return say.alert_as_action(place.span)
    line = _line_at(place)
    if asked := _ASK_MORE.match(line):
        return say.words_around_action(Span(place.start, place.start + asked.end()), "challenge")
    found = _WORDY.match(line)
    action = action_meant(found[1]) if found else None
    if found is None or action is None or found[0] == found[1]:
        return None
    return say.words_around_action(Span(place.start, place.start + found.end()), action)
