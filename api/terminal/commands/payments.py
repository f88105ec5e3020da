"""`toll payments`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import rich_click as click

from tollkeeper.api.terminal.folder import read_account, refusals
from tollkeeper.api.terminal.options import (
    account_option,
    cursor_option,
    data_option,
    json_option,
    limit_option,
)
from tollkeeper.api.terminal.output import out, print_json, say_cursor, show_whole

if TYPE_CHECKING:
    from tollkeeper.engine.journal.source import JournalSource
    from tollkeeper.engine.search.find import FoundPage, Sort


@click.command(panel="What happened")
@click.argument("wanted", metavar="[FILTER]", default="")
@account_option
@click.option("--count", is_flag=True, help="Print only their number.")
@limit_option
@click.option(
    "--sort",
    default="newest",
    show_default=True,
    type=click.Choice(["newest", "oldest", "dearest"]),
    help="Which come first; `dearest` is the largest amount of one currency, which the filter names.",
)
@cursor_option
@json_option
@data_option
def payments(
    wanted: str,
    account: str,
    count: bool,
    limit: int,
    sort: Sort,
    cursor: int | None,
    as_json_: bool,
    data: JournalSource,
) -> None:
    """Find payments: toll payments 'action:deny bin:470200 since:1h'."""
    import msgspec

    from tollkeeper.api.http.search import found_view
    from tollkeeper.api.terminal.decision_lines import decision_table
    from tollkeeper.engine.instants import now
    from tollkeeper.engine.search.ask import LocalSearch
    from tollkeeper.engine.search.filters import read_filter, read_members
    from tollkeeper.engine.search.find import CountPayments, FindPayments, FoundPage, check_sort

    number = read_account(data, account).number
    with refusals():
        filter_ = read_filter(read_members(wanted), now())
        check_sort(sort, filter_)
        search = LocalSearch(data)
        if count:
            total, _ = asyncio.run(search.ask(number, CountPayments(filter_), int))
            if as_json_:
                print_json({"count": total})
            else:
                out.print(total)
            return
        question = FindPayments(filter_, cursor, limit, sort)
        page: FoundPage
        page, _ = asyncio.run(search.ask(number, question, FoundPage))
    items = [msgspec.to_builtins(found_view(payment)) for payment in page.payments]
    if as_json_:
        print_json({"payments": items, "cursor": page.cursor})
        return
    show_whole(decision_table(items))
    say_cursor(page.cursor)
