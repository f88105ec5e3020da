"""Write docs/reference.md from the vocabulary, the functions and the diagnostics in the code,
docs/openapi.json from the routes, and docs/llms.txt from the pages for authors of rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template

from tollkeeper.api.http.document import document
from tollkeeper.engine.facts.reference import (
    NamedField,
    decision_fields,
    payment_fields,
    transaction_fields,
)
from tollkeeper.grammar.catalogue import CODES
from tollkeeper.grammar.functions import AGGREGATES, FUNCTIONS, Aggregate, Function, Parameter

DOCS = Path(__file__).parent
TEMPLATE = DOCS / "reference.template.md"
REFERENCE = DOCS / "reference.md"
DOCUMENT = DOCS / "openapi.json"
LLMS = DOCS / "llms.txt"

AUTHORS = (
    "language",
    "reference",
    "testing",
    "backtest",
    "proofs",
    "events",
    "scorecard",
    "editor",
)
"""The pages that an author of rules needs, in the order of reading."""

_OVER = {"payment": "the payment", "window": "a window", "history": "all history"}


def reference() -> str:
    """The text of docs/reference.md."""
    return Template(TEMPLATE.read_text()).substitute(
        functions=functions(),
        aggregates=aggregates(),
        payment=fields(payment_fields()),
        transaction=fields(transaction_fields()),
        decision=fields(decision_fields()),
        errors=diagnostics("error"),
        warnings=diagnostics("warning"),
    )


def openapi() -> str:
    """The text of docs/openapi.json, the same that a service answers."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def llms() -> str:
    """The text of docs/llms.txt: those pages in one, for an assistant that drafts rules."""
    pages = "\n".join((DOCS / f"{name}.md").read_text() for name in AUTHORS)
    return f"""# Tollkeeper

> A payment risk service with a rule language: each payment is scored, sent through a rule, and gets
> `allow`, `challenge` or `deny` with the rule and condition that said so.

A rule is drafted, checked (`toll check --json`), tested (`toll test --json`), backtested
(`toll backtest --json`) and only then published, by a person. `toll fields --json` lists all that a
rule can name, `toll mcp` offers the same as tools.

{pages}"""


def functions() -> str:
    rows = (
        (f"`{signature(each)}`", takes(each), each.gives, each.doc, f"`{each.example}`")
        for each in FUNCTIONS.values()
    )
    return table(("function", "takes", "gives", "meaning", "example"), rows)


def signature(function: Function) -> str:
    return f"{function.name}({', '.join(map(parameter, function.parameters))})"


def parameter(of: Parameter) -> str:
    written = f"{of.name} …" if of.repeated else of.name
    return f"[{written}]" if of.optional else written


def takes(function: Function) -> str:
    """What each parameter takes, parameters of one kind said once."""
    return "; ".join(dict.fromkeys(each.takes for each in function.parameters))


def aggregates() -> str:
    rows = (
        (f"`{each.name}`", over(each), each.value or "", each.gives, each.doc, f"`{each.example}`")
        for each in AGGREGATES.values()
    )
    return table(("aggregate", "over", "of a", "gives", "meaning", "example"), rows)


def over(aggregate: Aggregate) -> str:
    return ", ".join(_OVER[each] for each in aggregate.over)


def fields(named: Sequence[NamedField]) -> str:
    rows = ((f"`{each.name}`", type_of(each), each.doc) for each in named)
    return table(("name", "type", "meaning"), rows)


def type_of(field: NamedField) -> str:
    return f"`{field.type}`" if field.type.startswith('"') else field.type


def diagnostics(severity: str) -> str:
    codes = sorted(code for code, of in CODES.items() if of == severity)
    rows = ((f"[`{code}`](diagnostics/{code}.md)", summary(code)) for code in codes)
    return table(("code", "means"), rows)


def summary(code: str) -> str:
    """The first paragraph of the code's page."""
    return (DOCS / "diagnostics" / f"{code}.md").read_text().split("\n\n")[1]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    REFERENCE.write_text(reference())
    DOCUMENT.write_text(openapi())
    LLMS.write_text(llms())
