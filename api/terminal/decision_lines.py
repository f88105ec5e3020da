"""Decisions as lines on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from tollkeeper.api.terminal.demo_service import DemoAccess, Sample, curl_line
from tollkeeper.api.terminal.explanation import ACTION_STYLES


def demo_lines(news: DemoAccess | Sample) -> Iterator[Text]:
    """Say how to try the demo once it is ready; then one line per sample payment."""
    if isinstance(news, Sample):
        yield _sample_line(news)
        return
    yield Text.assemble("Tollkeeper answers at ", (news.url, "bold"), ", its page is at /schema")
    yield Text.assemble("its console, signed in once by this link: ", (news.console, "bold"))
    yield Text.assemble("account ", ("demo", "bold"), ", key ", (news.key, "bold"))
    yield Text("\ntry it in another terminal:\n")
    yield Text(curl_line(news))
    yield Text("\nsample payments, as they are decided (Ctrl-C ends):\n")


def _sample_line(sample: Sample) -> Text:
    sent, found = sample.item.body["payment"], sample.analyses["bot_behaviour"]
    amount = f"{sent.get('amount', 0):>9.2f} {sent['currency']}"
    return Text.assemble(
        f"{sent['timestamp'][11:19]}  {amount}  score {found['score']:.2f}  ",
        _action(f"{found['action']:<9}"),
        f"  {_condition(sample.analyses['rule']):<14} ",
        (sample.item.kind.replace("_", " "), "dim"),
    )


def decision_table(items: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of items of `GET /decisions` or `GET /payments`."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("arrived", "action", "score", "amount", "", "payment", "rule", "condition"):
        is_number = title in ("score", "amount")
        table.add_column(title, justify="right" if is_number else "left", no_wrap=True)
    for item in items:
        rule, found = item["analyses"]["rule"], item["analyses"].get("bot_behaviour")
        amount = item.get("amount")
        table.add_row(
            item["at"],
            _action(found["action"] if found else "no action"),
            f"{found['score']:.2f}" if found else "",
            "" if amount is None else f"{amount:.2f}",
            item["currency"],
            item["id"],
            rule["name"] if rule else "",
            _condition(rule),
        )
    return table


def _action(action: str) -> Text:
    return Text(action, ACTION_STYLES.get(action.strip(), "dim"))


def _condition(rule: Mapping[str, Any] | None) -> str:
    return rule["condition"]["id"] if rule and rule["condition"] else ""
