"""Write what the editors' files take from the language: its words as a TextMate grammar, and the
templates of `toll new` as snippets."""

from __future__ import annotations

import json
from pathlib import Path

from tollkeeper.api.terminal.templates import EXAMPLES, templates
from tollkeeper.engine.facts.reference import every_field
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS
from tollkeeper.grammar.parser import keywords

VSCODE = Path(__file__).parent / "vscode"
GRAMMAR = VSCODE / "syntaxes" / "toll.tmLanguage.json"
SNIPPETS = VSCODE / "snippets" / "toll.json"

ACTIONS = {"allow", "challenge", "deny", "default"}
CONSTANTS = {"true", "false", "missing", "present"}
OPERATORS = {
    *("and", "or", "not", "in", "is", "between", "contains", "starts", "ends", "with", "matches"),
}


def grammar() -> str:
    """The text of the TextMate grammar: every word of rule.lark, every function, every field."""
    words = set(keywords())
    rest = words - ACTIONS - CONSTANTS - OPERATORS
    calls = {*FUNCTIONS, *AGGREGATES}
    fields = sorted({each.name.split(".")[0] for each in every_field()} - words - calls)
    patterns = [
        {"name": "comment.line.number-sign.toll", "match": "#.*$"},
        {
            "name": "string.quoted.double.toll",
            "begin": '"',
            "end": '"|$',
            "patterns": [
                {"name": "constant.character.escape.toll", "match": r"\\(u\{[0-9A-Fa-f]{1,6}\}|.)"}
            ],
        },
        {"name": "string.regexp.toll", "match": r"/(?:[^/\\\n]|\\.)+/i?"},
        {"name": "constant.numeric.toll", "match": r"\b[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d)?\b"},
        {"name": "variable.other.list.toll", "match": r"@[A-Za-z_][A-Za-z0-9_]*"},
        {"name": "support.function.toll", "match": rf"\b(?:{one_of(calls)})(?=\s*\()"},
        {"name": "variable.other.member.toll", "match": r"(?<=\.)[A-Za-z_][A-Za-z0-9_]*"},
        {"name": "keyword.operator.word.toll", "match": rf"\b(?:{one_of(words & OPERATORS)})\b"},
        {"name": "constant.language.toll", "match": rf"\b(?:{one_of(words & CONSTANTS)})\b"},
        {"name": "support.constant.action.toll", "match": rf"\b(?:{one_of(words & ACTIONS)})\b"},
        {"name": "keyword.control.toll", "match": rf"\b(?:{one_of(rest)})\b"},
        {"name": "support.variable.toll", "match": rf"\b(?:{one_of(fields)})\b"},
        {"name": "keyword.operator.toll", "match": r"==|!=|<=|>=|[<>=+\-*/|]"},
    ]
    made = {"name": "Toll", "scopeName": "source.toll", "fileTypes": ["rule"], "patterns": patterns}
    return json.dumps(made, indent=2) + "\n"


def one_of(words: object) -> str:
    """The words as alternatives of a pattern, longer ones first."""
    return "|".join(sorted(words, key=lambda each: (-len(each), each)))  # type: ignore[call-overload]


def snippets() -> str:
    """The text of the snippets: each template of `toll new`, under its name."""
    made = {}
    for name, purpose in templates():
        text = (EXAMPLES / f"{name}.rule").read_text(encoding="utf-8")
        body = [line.replace("\\", "\\\\").replace("$", r"\$") for line in text.splitlines()]
        made[name] = {"prefix": name, "description": purpose, "body": body}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GRAMMAR.write_text(grammar())
    SNIPPETS.write_text(snippets())
