"""A backtest's report in words: for a terminal, a page, a pull request."""

from __future__ import annotations

from collections.abc import Mapping

from tollkeeper.engine.offline.backtest.report import Report, ReportedOutcome, count_payments

NO_ACTION = "no recommendation"


def summary(report: Report) -> list[str]:
    """Return the report as a few lines of Markdown, for a pull request."""
    head, words = headline(report)
    lines = [f"**{report.candidate}** over {head}: **{words}**"]
    if report.changes:
        lines += ["", "| was | would be | payments | amount |", "|---|---|--:|--:|"]
        lines += [
            f"| {result_text(each.was)} | {result_text(each.now)} | {each.payments:,}"
            f" | {amounts_text(each.amounts)} |"
            for each in report.changes
        ]
    if report.decided:
        lines += ["", "| would be | payments | amount |", "|---|--:|--:|"]
        lines += [
            f"| {result_text(each.now)} | {each.payments:,} | {amounts_text(each.amounts)} |"
            for each in report.decided
        ]
    if report.labels:
        lines += ["", "| label | was | would be | payments | amount |", "|---|---|---|--:|--:|"]
        lines += [
            f"| {label.value or 'no label'} | {each.was or NO_ACTION} | {each.now or NO_ACTION}"
            f" | {each.payments:,} | {amounts_text(each.amounts)} |"
            for label in report.labels
            for each in label.moved
        ]
    return [*lines, *(f"\n> {note}" for note in report.notes)]


def headline(report: Report) -> tuple[str, str]:
    """Return the number of payments and their days, and the result in a few words."""
    total, compared = report.payments.payments, report.compared.payments
    payments = f"{count_payments(total)} {days(report)}"
    if not total:
        return payments, "nothing would change"
    if not compared:
        return payments, "no decision is recorded, so nothing is compared"
    changed = report.changed.payments
    words = f"{changed:,} ({changed / compared:.2%}) would change"
    return payments, words if compared == total else f"of {compared:,} with a decision, {words}"


def days(report: Report) -> str:
    """Return `from 2026-03-02 to 2026-03-04` or `of 2026-03-02`."""
    first, last = report.since[:10], report.until[:10]
    return f"of {first}" if first == last else f"from {first} to {last}"


def result_text(result: ReportedOutcome) -> str:
    """Return `deny by card_testing`."""
    action = result.action or NO_ACTION
    return action if result.condition is None else f"{action} by {result.condition}"


def amounts_text(amounts: Mapping[str, str]) -> str:
    """Return `12,400.00 BRL, 310.50 USD`."""
    return ", ".join(f"{_thousands(text)} {currency}" for currency, text in amounts.items())


def _thousands(text: str) -> str:
    units, _, hundredths = text.partition(".")
    return f"{int(units):,}.{hundredths}"
