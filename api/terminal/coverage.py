"""Coverage as text for a terminal, as JSON, and as an HTML page with coloured rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from tollkeeper.engine.offline.testing.coverage import FileCoverage, Goal, percent
from tollkeeper.grammar.render import Source
from tollkeeper.grammar.syntax import Span

_WORDS = {"met": "never met", "refused": "never refused", "mattered": "never mattered"}


def as_text(covered: Sequence[FileCoverage]) -> str:
    """Return each file's share, and a line for everything that wasn't covered."""
    lines = []
    for each in covered:
        if each.goals:
            lines.append(f"{percent([each]):5.1f} %  {each.name}")
            lines += [f"         line {line}: {words}" for line, words in _missed_lines(each)]
    lines.append(f"{percent(covered):5.1f} %  in all")
    return "\n".join(lines)


def as_json(covered: Sequence[FileCoverage]) -> str:
    """Return `as_data` as the text of a JSON file."""
    return json.dumps(as_data(covered), indent=2) + "\n"


def as_data(covered: Sequence[FileCoverage]) -> dict[str, Any]:
    """Return the shares in percent; lines and characters count from 1."""
    files = []
    for each in covered:
        source = Source.of(each.name, each.file.text)
        missed = []
        for goal in each.missed:
            start, end = (source.position(offset) for offset in goal.span)
            missed.append(
                {
                    "line": start.line,
                    "column": start.column,
                    "end_line": end.line,
                    "end_column": end.column,
                    "in": goal.name,
                    "missed": goal.mark.seen,
                    "text": each.file.written(goal.span),
                }
            )
        files.append(
            {
                "file": each.name,
                "percent": round(percent([each]), 1),
                "goals": len(each.goals),
                "missed": missed,
            }
        )
    return {"percent": round(percent(covered), 1), "files": files}


def as_html(covered: Sequence[FileCoverage]) -> str:
    """Return a self-contained page; uncovered parts are marked, with the reason as tooltip."""
    sections = "".join(_section(each) for each in covered if each.goals)
    return _PAGE.replace("{percent}", f"{percent(covered):.1f}").replace("{sections}", sections)


def _missed_lines(covered: FileCoverage) -> Iterator[tuple[int, str]]:
    for goal in sorted(covered.missed, key=lambda goal: goal.span):
        yield covered.file.line(goal.span), _words(covered, goal)


def _words(covered: FileCoverage, goal: Goal) -> str:
    what = goal.name if goal.mark.seen != "mattered" else f"`{covered.file.written(goal.span)}`"
    return f"{what} {_WORDS[goal.mark.seen]}"


def _section(covered: FileCoverage) -> str:
    heading = f"<h2>{escape(covered.name)} <small>{percent([covered]):.1f} %</small></h2>"
    return f"{heading}<pre>{_colour_text(covered)}</pre>"


def _colour_text(covered: FileCoverage) -> str:
    """Mark each coverable part of the text, inner ones inside outer ones."""
    text = covered.file.text
    missed: dict[Span, list[str]] = {goal.span: [] for goal in covered.goals}
    for goal in covered.missed:
        missed[goal.span].append(_words(covered, goal))
    opened = sorted(missed, key=lambda span: (span.start, -span.end))
    written, done = [], 0
    open_ends: list[int] = []

    def up_to(offset: int) -> None:
        nonlocal done
        written.append(escape(text[done:offset]))
        done = offset

    def close(before: int) -> None:
        while open_ends and open_ends[-1] <= before:
            up_to(open_ends.pop())
            written.append("</mark>")

    for span in opened:
        close(span.start)
        up_to(span.start)
        why = "; ".join(missed[span])
        kind = f'class="missed" title="{escape(why)}"' if why else 'class="seen"'
        written.append(f"<mark {kind}>")
        open_ends.append(span.end)
    close(len(text))
    up_to(len(text))
    return "".join(written)


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Rule coverage</title>
<style>
  :root { color-scheme: light dark; --seen: #1a7f3726; --missed: #cf222e33; --line: #cf222e; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
  h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
  small { font-weight: normal; opacity: .7; }
  pre { font: 14px/1.6 ui-monospace, monospace; padding: 1rem; border: 1px solid #8884; border-radius: 6px; overflow-x: auto; }
  mark { color: inherit; background: none; border-radius: 3px; padding: 1px 0; }
  .seen { background: var(--seen); }
  .missed { background: var(--missed); border-bottom: 2px solid var(--line); cursor: help; }
</style>
<h1>Rule coverage: {percent} %</h1>
<p><mark class="seen">Seen</mark> by a test or a case, or <mark class="missed">not seen</mark>: point at it to read what is missing.</p>
{sections}
</html>
"""
