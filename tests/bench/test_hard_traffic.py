"""The hard traffic: repeatable, accepted by the service, every family and kind in one half of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import pytest

from tollkeeper.api.terminal.traffic import label_items
from tollkeeper.bench.hard_traffic import FIRST_HALF, SECOND_HALF, hard_traffic
from tollkeeper.bench.hard_traffic.campaigns import CAMPAIGNS
from tollkeeper.bench.hard_traffic.crowd import CROWD
from tollkeeper.bench.hard_traffic.probing import LADDER, probed_traffic
from tollkeeper.bench.hard_traffic.stream import EVERYDAY
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.testing.streams import CreationLine, UpdateLine

START = datetime(2025, 6, 2, tzinfo=UTC)
HALVES = [replace(half, payments=1200) for half in (FIRST_HALF, SECOND_HALF)]


@pytest.fixture(scope="module", params=HALVES, ids=["first half", "second half"])
def half(request):
    return request.param


@pytest.fixture(scope="module")
def items(half):
    return list(hard_traffic(1, START, half))


def test_one_seed_always_gives_one_stream_and_another_seed_another(half, items):
    assert list(hard_traffic(1, START, half)) == items
    assert list(hard_traffic(2, START, half)) != items


def test_the_halves_share_nothing_but_everyday_people():
    first, second = HALVES
    assert {*first.families, *second.families} == set(CAMPAIGNS)
    assert {*first.kinds, *second.kinds} == set(CROWD)
    assert not {*first.families} & {*second.families}
    assert {*first.kinds} & {*second.kinds} == set(EVERYDAY)


def test_labels_are_those_of_the_families(half, items):
    paid = [item for item in items if "payment" in item.body]
    assert {item.kind for item in paid} <= {*half.families, *half.kinds}
    assert all(item.bot == (item.kind in half.families) for item in paid)


def test_the_service_takes_every_body_in_order_of_time(items):
    assert all(one.at <= next_.at for one, next_ in pairwise(items))
    known = set()
    for read in read_labelled(map(msgspec.json.encode, label_items(items, START))):
        match read.item:
            case CreationLine(payment=payment):
                known.add(payment.id)
            case UpdateLine(id=id_):
                assert id_ in known


def test_seeds_differ_in_shops_codes_and_the_share_of_bots(half):
    def drawn(seed):
        several = list(hard_traffic(seed, START, half))
        paid = [item for item in several if "payment" in item.body]
        bots = sum(item.bot for item in paid) / len(paid)
        shops = {item.body["payment"]["merchant"]["id"] for item in paid}
        codes = {
            each["connector"]["response_code"]
            for item in several
            if "update" in item.body
            for each in item.body["update"]["transactions"]
        }
        return bots, len(shops), frozenset(codes)

    for figures in zip(*(drawn(seed) for seed in range(3, 7)), strict=True):
        assert len(set(figures)) > 1


@pytest.mark.parametrize("stops", [True, False], ids=["always stopped", "never stopped"])
def test_an_attacker_changes_something_only_when_stopped_and_then_the_cheapest_first(stops):
    answered = [
        item for item in probed_traffic(1, START, HALVES[0], lambda: stops) if item.kind in LADDER
    ]
    tried = [item.kind for item in answered if "payment" in item.body]
    rungs = list(LADDER)
    assert rungs.index(max(tried, key=rungs.index)) == (len(rungs) - 1 if stops else 0)
    assert all(item.bot for item in answered)


def test_what_is_stopped_has_no_outcome():
    items = probed_traffic(1, START, HALVES[0], lambda: True)
    assert not [item for item in items if item.kind in LADDER and "update" in item.body]
