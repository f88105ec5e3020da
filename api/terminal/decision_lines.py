"""Lines for a terminal of what the service answers, in rich's markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape

from tollkeeper.api.terminal.demo_service import DemoAccess, Sample, curl_line
from tollkeeper.api.terminal.explanation import ACTION_STYLES


def demo_lines(news: DemoAccess | Sample) -> Iterator[str]:
    """How to try the demo, once it answers; then a line for each sample payment."""
    if isinstance(news, Sample):
        yield _sample_line(news)
        return
    yield f"Tollkeeper answers at [bold]{news.url}[/], its page is at /schema"
    yield f"account [bold]demo[/], key [bold]{news.key}[/]"
    yield "\ntry it in another terminal:\n"
    yield escape(curl_line(news))
    yield "\nsample payments, as they are decided (Ctrl-C ends):\n"


def _sample_line(sample: Sample) -> str:
    sent, found = sample.item.body["payment"], sample.analyses["bot_behaviour"]
    amount = f"{sent.get('amount', 0):>9.2f} {sent['currency']}"
    return (
        f"{sent['timestamp'][11:19]}  {amount}  score {found['score']:.2f}"
        f"  {_action(found['action'])}  {_condition(sample.analyses['rule']):<14}"
        f" [dim]{sample.item.kind.replace('_', ' ')}[/]"
    )


def decision_line(item: Mapping[str, Any]) -> str:
    """One item of `GET /decisions`."""
    rule = item["analyses"]["rule"]
    found = item["analyses"].get("bot_behaviour")
    score = f"{found['score']:.2f}" if found else "    "
    by = f"{rule['name']} {_condition(rule)}" if rule else ""
    action = _action(found["action"] if found else "no action")
    return f"{item['at']}  {action}  {score}  {escape(item['id'])}  [dim]{by}[/]"


def _action(action: str) -> str:
    return f"[{ACTION_STYLES.get(action, 'dim')}]{action:<9}[/]"


def _condition(rule: Mapping[str, Any] | None) -> str:
    return rule["condition"]["id"] if rule and rule["condition"] else ""
