"""The made-up traffic: repeatable, accepted by the service, honest in its labels."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from itertools import pairwise

import msgspec
import pytest

from tollkeeper.api.terminal.traffic import ONE_DAY, label_items, traffic
from tollkeeper.api.terminal.traffic.bots import FAMILIES
from tollkeeper.api.terminal.traffic.people import KINDS
from tollkeeper.engine.facts.clients import Clients
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.testing.streams import CreationLine, UpdateLine

START = datetime(2025, 6, 2, tzinfo=UTC)
SMALL = ONE_DAY.scaled(0.02)
NOBODYS = [ip_network(each) for each in ("198.18.0.0/15", "240.0.0.0/4", "2001:db8::/32")]


@pytest.fixture(scope="module")
def items():
    return list(traffic(1, START, SMALL))


@pytest.fixture(scope="module")
def payments(items):
    return [item for item in items if "payment" in item.body]


def test_one_seed_always_gives_one_stream(items):
    assert list(traffic(1, START, SMALL)) == items


def test_another_seed_gives_another_stream(items):
    assert list(traffic(2, START, SMALL)) != items


def test_more_bots_change_nothing_about_people(payments):
    more = replace(SMALL, bots={family: count * 2 for family, count in SMALL.bots.items()})
    again = [item for item in traffic(1, START, more) if "payment" in item.body]
    assert [item for item in again if not item.bot] == [item for item in payments if not item.bot]


def test_every_family_and_every_kind_of_people_take_part(payments):
    assert {item.kind for item in payments if item.bot} == set(FAMILIES)
    assert {item.kind for item in payments if not item.bot} == set(KINDS)


def test_the_stream_is_in_time_order(items):
    assert all(one.at <= next_.at for one, next_ in pairwise(items))


def test_the_service_takes_every_body_and_each_update_follows_its_payment(items):
    known = set()
    lines = map(msgspec.json.encode, label_items(items, START))
    for item, sent in zip(read_labelled(lines), items, strict=True):
        match item.item:
            case CreationLine(payment=payment):
                known.add(payment.id)
                assert item.label == int(sent.bot)
            case UpdateLine(id=id_):
                assert id_ in known
                assert item.label is None


def test_a_bot_sends_no_field_that_people_never_send(payments):
    def fields(bot):
        return {name for item in payments if item.bot == bot for name in item.body["payment"]}

    assert fields(bot=True) <= fields(bot=False)
    assert all(set(item.body) == {"payment"} for item in payments)


def test_addresses_belong_to_nobody(payments):
    for item in payments:
        device = item.body["payment"].get("device")
        if device is not None:
            address = ip_address(device["ip_address"])
            assert any(address in network for network in NOBODYS), address


def test_a_renewal_has_no_device(payments):
    renewals = [item.body["payment"] for item in payments if item.kind == "renewal"]
    assert renewals
    assert all("device" not in payment for payment in renewals)


def test_people_come_with_browsers_and_apps_that_agree_with_themselves():
    clients = Clients()
    seen = [
        client
        for item in traffic(3, START, ONE_DAY.scaled(0.1))
        if not item.bot and "device" in item.body.get("payment", {})
        if (client := clients(item.body["payment"]["device"]["headers"])) is not None
    ]
    assert {client.kind for client in seen} == {"browser", "app"}
    contradicting = sum(not client.consistent for client in seen)
    assert contradicting < len(seen) / 200


def test_a_naive_script_shows_its_library(payments):
    clients = Clients()
    scripts = [item.body["payment"]["device"] for item in payments if item.kind == "naive_script"]
    assert {clients(device["headers"]).kind for device in scripts} == {"library"}


def test_a_plan_of_fewer_hours_ends_with_them():
    short = replace(SMALL, hours=2)
    assert max(item.at for item in traffic(1, START, short)) < 2 * 3600
