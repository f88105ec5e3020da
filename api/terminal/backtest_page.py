"""A backtest's report as one self-contained HTML page, for people who write no rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from tollkeeper.api.terminal.backtest_words import amounts_text, days, result_text
from tollkeeper.engine.offline.backtest.report import (
    FILES,
    UNRECORDED,
    MovesBetweenActions,
    OutcomeChange,
    Report,
    ReportGroup,
    UnrecordedDecisions,
)

COLOURS = {"allow": "#2e7d52", "challenge": "#c98a00", "deny": "#b3362b"}
_UNKNOWN = "#7a7f87"
BAR = 420
"""The longest bar, in pixels."""
SHOWN = 15
"""The most merchants and changes shown; the JSON has all."""

AMOUNT = '<th class="number">payments<th class="number">amount'

STYLE = """
:root { color-scheme: light; --ink: #1f2328; --soft: #626a73; --line: #dfe2e6; }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 62rem; margin: 2.5rem auto;
  padding: 0 1.5rem }
h1 { font-size: 1.6rem; margin: 0 }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .5rem }
p { margin: .3rem 0 .8rem } .soft { color: var(--soft) }
.figures { display: flex; gap: 1rem; margin: 1.5rem 0; flex-wrap: wrap }
.figure { border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1.2rem; flex: 1 1 12rem }
.figure b { display: block; font-size: 1.7rem; font-weight: 600 }
.note { border-left: 4px solid #c98a00; background: #fdf6e3; padding: .5rem .9rem; margin: .5rem 0 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top }
th { color: var(--soft); font-weight: 500 } .number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap }
.number + td, .number + th { padding-left: 1.2rem }
details { margin: 0 } summary { cursor: pointer }
svg text { font: 13px system-ui, sans-serif; fill: var(--ink) }
@media print { body { margin: 0 } details { display: block } }
"""


def backtest_page(report: Report) -> str:
    """Return the report as HTML."""
    title = f"Backtest of {report.candidate}"
    against = (
        "against what was decided then"
        if report.compared.payments
        else "with nothing to compare it to, as no decision is recorded"
    )
    lead = (
        f"The {report.kind} over {_source(report)} {days(report)}, each with what was known when it"
        f" arrived, {against}."
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(lead)}</p>',
        *_figures(report),
        *(f'<p class="note">{escape(note)}</p>' for note in report.notes),
        *_section("What happens to payments", _actions(report)),
        *_section("What would change", _changes(report)),
        *_section("What would be decided", _unrecorded_rows(report.decided)),
        *_section("Conditions", _conditions(report)),
        *_section(
            f"How {_whose(report)} ended",
            _groups(report, report.statuses, "final status"),
            "A payment that succeeded and would be denied is lost business; a declined one is not.",
        ),
        *_section("By label", _groups(report, report.labels, "label")),
        *_section("By merchant", _groups(report, report.merchants[:SHOWN], "merchant")),
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _figures(report: Report) -> Iterator[str]:
    compared, changed = report.compared.payments, report.changed.payments
    yield '<div class="figures">'
    yield _figure(
        f"{report.payments.payments:,}", "payments", amounts_text(report.payments.amounts)
    )
    if compared:
        share = f"would change, {changed / compared:.2%} of those with a decision"
        yield _figure(f"{changed:,}", share, amounts_text(report.changed.amounts))
    for action, done in (("challenge", "challenged"), ("deny", "denied")):
        moved = [each for each in report.actions if (each.was != UNRECORDED) == bool(compared)]
        was = sum(each.payments for each in moved if each.was == action)
        now = sum(each.payments for each in moved if each.now == action)
        if compared:
            yield _figure(f"{now - was:+,}", f"{done}: {was:,} were, {now:,} would be", "")
        else:
            yield _figure(f"{now:,}", f"would be {done}", "")
    yield "</div>"


def _figure(number: str, label: str, below: str) -> str:
    return (
        f'<div class="figure"><b>{number}</b>{escape(label)}'
        f'<div class="soft">{escape(below)}</div></div>'
    )


def _section(title: str, content: Iterable[str], lead: str = "") -> Iterator[str]:
    """Yield a section; nothing if it has no content."""
    lines = list(content)
    if lines:
        yield f"<h2>{escape(title)}</h2>"
        if lead:
            yield f'<p class="soft">{escape(lead)}</p>'
        yield from lines


def _actions(report: Report) -> Iterator[str]:
    """Yield the actions of payments with a recorded decision; of all payments if none has one."""
    compared = bool(report.compared.payments)
    moved = [each for each in report.actions if (each.was != UNRECORDED) == compared]
    rows = []
    for name in dict.fromkeys((*COLOURS, *(each.now for each in moved))):
        was = sum(each.payments for each in moved if each.was == name)
        now = sum(each.payments for each in moved if each.now == name)
        if was or now:
            rows.append((_action(name), was, now, COLOURS.get(name or "", _UNKNOWN)))
    if rows:
        yield _bars(rows, compared)


def _changes(report: Report) -> Iterator[str]:
    if not report.compared.payments:
        return
    if not report.changes:
        yield "<p>Nothing: no decision of then would be another.</p>"
        return
    yield f"<table><tr><th>was<th>would be{AMOUNT}</tr>"
    for each in report.changes[:SHOWN]:
        yield f"<tr><td>{escape(result_text(each.was))}{_would_be(each)}</tr>"
    yield "</table>"


def _unrecorded_rows(decided: Sequence[UnrecordedDecisions]) -> Iterator[str]:
    if decided:
        yield f"<table><tr><th>would be{AMOUNT}</tr>"
        for each in decided[:SHOWN]:
            yield f"<tr>{_would_be(each)}</tr>"
        yield "</table>"


def _would_be(part: OutcomeChange | UnrecordedDecisions) -> str:
    colour = COLOURS.get(part.now.action or "", _UNKNOWN)
    rows = "".join(
        f"<tr><td>{escape(each.id)}<td>{_moment(each.at)}"
        f'<td class="number">{escape(each.amount or "")} {escape(each.currency)}'
        f"<td>{escape(each.merchant)}"
        f'<td class="number">{"" if each.score is None else f"{each.score:.2f}"}</tr>'
        for each in part.examples
    )
    return (
        f'<td><details><summary style="color: {colour}">{escape(result_text(part.now))}</summary>'
        "<table><tr><th>payment<th>arrived<th>amount<th>merchant<th>score</tr>"
        f'{rows}</table></details><td class="number">{part.payments:,}'
        f'<td class="number">{escape(amounts_text(part.amounts))}'
    )


def _conditions(report: Report) -> Iterator[str]:
    rows = [
        (
            each.condition,
            each.was.payments,
            each.now.payments,
            COLOURS.get(each.action or "", _UNKNOWN),
        )
        for each in report.conditions
        if each.condition is not None
    ]
    if rows:
        yield _bars(rows, bool(report.compared.payments))


def _source(report: Report) -> str:
    return "payments from files" if report.account == FILES else f"payments of {report.account}"


def _whose(report: Report) -> str:
    return "the payments that change" if report.compared.payments else "the payments"


def _groups(report: Report, groups: Sequence[ReportGroup], name: str) -> Iterator[str]:
    if not groups:
        return
    would = "would change" if report.compared.payments else "would be decided"
    yield f'<table><tr><th>{name}<th class="number">payments<th>{would}</tr>'
    for each in groups:
        moved = [_moved_row(one) for one in each.moved if one.was != one.now]
        value = f"no {name}" if each.value is None else each.value
        yield (
            f'<tr><td>{escape(value)}<td class="number">{each.payments:,}'
            f"<td>{'<br>'.join(map(escape, moved)) or 'nothing'}</tr>"
        )
    yield "</table>"


def _moved_row(moved: MovesBetweenActions) -> str:
    way = _action(moved.now)
    if moved.was != UNRECORDED:
        way = f"from {_action(moved.was)} to {way}"
    return f"{moved.payments:,} {way} ({amounts_text(moved.amounts)})"


def _bars(rows: Sequence[tuple[str, int, int, str]], compared: bool) -> str:
    """Yield two bars a row: the former number, pale, if it is known, and the new one."""
    most = max((max(was, now) for _, was, now, _ in rows), default=0) or 1
    drawn = []
    tall = 46 if compared else 30
    for index, (label, was, now, colour) in enumerate(rows):
        top = index * tall
        drawn.append(f'<text x="0" y="{top + tall // 2}">{escape(label)}</text>')
        bars = [(now, top + tall - 26, 1.0, "would be")]
        if compared:
            bars.insert(0, (was, top + 4, 0.35, "were"))
        for number, y, opacity, word in bars:
            width = max(number / most * BAR, 1 if number else 0)
            drawn.append(
                f'<rect x="190" y="{y}" width="{width:.1f}" height="14" rx="2" fill="{colour}"'
                f' opacity="{opacity}"/>'
                f'<text x="{196 + width:.1f}" y="{y + 12}">{number:,} {word}</text>'
            )
    height = len(rows) * tall + 4
    return f'<svg role="img" width="780" height="{height}" viewBox="0 0 780 {height}">{"".join(drawn)}</svg>'


def _action(action: str | None) -> str:
    return action or "no recommendation"


def _moment(moment: str) -> str:
    return escape(moment[:19].replace("T", " "))
