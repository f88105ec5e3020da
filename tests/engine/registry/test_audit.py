from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from tollkeeper.engine.journal.entries import Entry, Kind, ListEntry
from tollkeeper.engine.lists.spec import ListSpec
from tollkeeper.engine.registry import changes
from tollkeeper.engine.registry.audit import audit_item
from tollkeeper.engine.registry.changes import Change, RecordedChange

SECRET = "tell-nobody"

# One change of every type, with a secret wherever there is one.
EVERY = [
    changes.AccountCreated("shop"),
    changes.SettingsChanged(changes.AccountSettings(changes.Thresholds(40, 90)), ("thresholds",)),
    changes.KeyCreated("toll_abcdefgh", SECRET.encode(), ("payments", "rules"), "till", 17),
    changes.KeyRevoked("toll_abcdefgh"),
    changes.UserSet("ana@shop.example", "lead"),
    changes.UserSet("rui@shop.example", "viewer", ("m-1",)),
    changes.UserRemoved("ana@shop.example"),
    changes.SessionStarted(SECRET.encode(), "ana@shop.example", 17),
    changes.SessionStarted(SECRET.encode(), "toll_abcdefgh", 17, parent="toll_abcdefgh"),
    changes.SessionEnded(SECRET.encode(), "ana@shop.example"),
    changes.UserLinkMade("ana@shop.example"),
    changes.VersionStored("rule", "checkout", 3, "text", {}, "c0ffee", 1, SECRET.encode()),
    changes.Activated("event", "chargeback", 3, 1_800_000_000_000_000),
    changes.Deactivated("rule", "checkout"),
    changes.Activated("rule", "checkout", 4, until=1_800_000_000_000_000, reason="an attack"),
    changes.Activated("rule", "checkout", 3, ended=True),
    changes.Deactivated("rule", "checkout", ended=True),
    changes.ShadowSet("rule", "checkout", 4),
    changes.ShadowCleared("rule", "checkout"),
    changes.RolloutSet("scorecard", "bot_behaviour", 2, 25, "user"),
    changes.RolloutCleared("scorecard", "bot_behaviour"),
    changes.Proposed(
        1, changes.Activated("rule", "checkout", 4), "version 3", "guessing also by night"
    ),
    changes.ProposalRefused(1, "it denies our best customers"),
    changes.Activated(
        "rule", "checkout", 4, until=1_800_000_000_000_000, reason="a", proposal=1, alone=True
    ),
    changes.RolloutSet("rule", "checkout", 4, 10, "user", 2),
    changes.SearchSaved("refused today", "action:deny since:1d"),
    changes.SearchDropped("refused today"),
    changes.AlertMarked(12, 0, "acknowledged", "a sale"),
    changes.ListMade("trusted", ListSpec("string")),
    changes.EntriesChanged("trusted", "put", 2, ("ana", "bob")),
    changes.Proposed(
        2,
        changes.EntriesWanted("trusted", "put", 1, (ListEntry("ana"),)),
        "list trusted",
        "a regular",
    ),
    changes.EntriesChanged(
        "trusted", "put", 1, ("ana",), 2, 1_800_000_000_000_000, reason="a", alone=True
    ),
    changes.EntriesChanged("trusted", "remove", 1, ("ana",), 2, ended=True, reason="a slip"),
    changes.ListReplaced("trusted", 12, 1_000_000),
    changes.WebhookSet(
        "https://example.com/",
        (SECRET, changes.SealedSecret(SECRET.encode())),
        ("payment.decided",),
        changes.DecidedFilter(action=("deny",)),
    ),
    changes.WebhookRemoved("https://example.com/"),
    changes.ErasureAsked("c0ffee", SECRET.encode()),
    changes.PersonErased("c0ffee", 12, 3, 1, {"blocked": 2}),
    changes.ScorecardShipped("bot_behaviour", "text", "c0ffee", 1, SECRET.encode()),
    changes.AccountSuspended(),
    changes.AccountResumed(),
    changes.AccountDeleted(),
]


def test_the_log_of_every_change_reads_well(snapshot):
    items = [
        audit_item(RecordedChange(sequence, 0, 1, "toll_abcdefgh", change))
        for sequence, change in enumerate(EVERY, 1)
    ]
    lines = [f"{item.action}  {item.subject}  {item.detail}" for item in items]
    assert "\n".join(lines) == snapshot


def test_every_type_of_change_is_tried_here():
    assert {type(change) for change in EVERY} == set(get_args(Change))


@pytest.mark.parametrize("change", EVERY, ids=lambda change: type(change).__name__)
def test_no_secret_is_in_the_log(change):
    shown = msgspec.json.encode(audit_item(RecordedChange(1, 0, 1, "toll_abcdefgh", change)))
    assert SECRET.encode() not in shown
    assert msgspec.json.encode(SECRET.encode()).strip(b'"') not in shown


@pytest.mark.parametrize("change", EVERY, ids=lambda change: type(change).__name__)
def test_the_log_says_who_when_and_where(change):
    item = audit_item(RecordedChange(17, 42, 1, "toll publish", change))
    assert (item.sequence, item.at, item.by) == (17, 42, "toll publish")


@pytest.mark.parametrize("change", EVERY, ids=lambda change: type(change).__name__)
def test_every_change_is_read_back_as_it_was_written(change):
    body = changes.encode_change("toll publish", change)
    entry = Entry(17, 1, Kind.CHANGE, "1", 42, 42, body)
    assert changes.decode_change(entry) == RecordedChange(17, 42, 1, "toll publish", change)
