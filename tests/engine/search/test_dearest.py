"""The dearest payments come first, in whatever blocks they are."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tollkeeper.engine.journal import schema
from tollkeeper.engine.registry.errors import Invalid
from tollkeeper.engine.search.blocks import SIZE
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import FindPayments
from tollkeeper.engine.search.follow import Follower
from tollkeeper.engine.search.reading import open_index
from tollkeeper.tests.engine.search.test_large_sets import one_payment

BLOCKS, IN_EACH = 4, 9


def test_the_dearest_of_several_blocks_come_first_and_each_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    account, first = asyncio.run(one_payment(folder))
    draw = Random(4)
    amounts = {
        first + block * SIZE + number: draw.choice((0, 5, 70, 70_000))
        for block in range(1, BLOCKS + 1)
        for number in range(IN_EACH)
    }
    columns = "account, kind, arrived, time, outcome"
    with closing(schema.connect(folder)) as journal, closing(Follower(folder)) as follower:
        (body,) = journal.execute("SELECT body FROM journal WHERE place = ?", (first,)).fetchone()
        journal.execute("BEGIN")
        for place, amount in amounts.items():
            dear = re.sub(rb'"amount":[\d.]+', b'"amount":%d' % amount, body)
            journal.execute(
                f"INSERT INTO journal (place, id, body, {columns})"
                f" SELECT ?, ?, ?, {columns} FROM journal WHERE place = ?",
                (place, f"p-{place}", dear, first),
            )
        journal.execute("COMMIT")
        follower.catch_up()
    amounts[first] = 1
    with open_index(folder, account) as index:
        page = FindPayments(Filter(), None, 5, "dearest").answer(index)
        found = [each.sequence for each in page.payments]
        while page.cursor is not None:
            page = FindPayments(Filter(), page.cursor, 5, "dearest").answer(index)
            found += [each.sequence for each in page.payments]
        assert found == sorted(amounts, key=lambda place: (-amounts[place], place))
        with pytest.raises(Invalid):
            FindPayments(Filter(), first + 1, 5, "dearest").answer(index)
