"""The form of a vocabulary: the names that a file may use, with types and descriptions.

The engine supplies the contents, which it derives from the payment's own types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import Type


@dataclass(frozen=True, slots=True)
class Field:
    """A name that a file can use.

    `path` is the name, split at its dots. `access` is the chain of attributes from the facts to the
    value (for a transaction's field, from the element); each may be None. A `required` field is
    present whenever its record is. `refuses` returns, in words, why a value (represented as in
    `types.py`) never occurs, or None if it may; it is None without such rules. `longest` is the most
    characters of a text (of `headers` and `metadata`: of one text in them), and the most records of a
    collection.
    """

    path: tuple[str, ...]
    type: Type
    doc: str
    access: tuple[str, ...]
    required: bool = False
    refuses: Callable[[Value], str | None] | None = None
    longest: int = 256


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Fields by dotted name.

    `payment`: bare names in a rule. `transaction`: the fields of an element of `transactions`.
    `decision`: the fields of a historical record under `decision.`.
    """

    payment: Mapping[str, Field]
    transaction: Mapping[str, Field]
    decision: Mapping[str, Field]


def is_always_there(fields: Mapping[str, Field], path: tuple[str, ...]) -> bool:
    """Whether a field is never missing: it and each record around it are required."""
    names = (".".join(path[:length]) for length in range(1, len(path) + 1))
    return all(name in fields and fields[name].required for name in names)
