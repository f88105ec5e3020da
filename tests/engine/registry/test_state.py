from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.instants import DAY
from tollkeeper.engine.lists.spec import ListSpec
from tollkeeper.engine.registry import changes, sessions, state
from tollkeeper.engine.registry.state import Configuration, fold_change, fold_changes

NAMES = ("checkout", "mobile")
KEYS = ("toll_a", "toll_b")
numbers = st.integers(1, 3)
names = st.sampled_from(NAMES)

_begin = [
    changes.AccountCreated("shop"),
    *(changes.KeyCreated(key, key.encode(), ("payments",)) for key in KEYS),
    *(
        changes.VersionStored("rule", name, number, f"{name} {number}", {}, "", 1, b"")
        for name in NAMES
        for number in (1, 2, 3)
    ),
    changes.ListMade("trusted", ListSpec("string")),
]
_later = (
    st.builds(changes.Activated, st.just("rule"), names, numbers)
    | st.builds(changes.Deactivated, st.just("rule"), names)
    | st.builds(changes.ShadowSet, st.just("rule"), names, numbers)
    | st.builds(changes.ShadowCleared, st.just("rule"), names)
    | st.builds(changes.RolloutSet, st.just("rule"), names, numbers, st.just(50), st.just("user"))
    | st.builds(changes.RolloutCleared, st.just("rule"), names)
    | st.builds(changes.KeyRevoked, st.sampled_from(KEYS))
    | st.builds(changes.EntriesChanged, st.just("trusted"), st.just("put"), st.just(1), st.just(()))
    | st.builds(changes.ListReplaced, st.just("trusted"), st.integers(1, 9), st.just(1))
    | st.builds(
        changes.SessionStarted,
        st.sampled_from((b"s", b"t")),
        st.just("ana"),
        st.integers(0, 40),
        st.sampled_from((None, *KEYS)),
    )
    | st.builds(changes.SessionEnded, st.sampled_from((b"s", b"t")), st.just("ana"))
    | st.builds(changes.UserRemoved, st.just("ana"))
    | st.just(changes.WebhookSet("https://example.com/", ("secret",)))
    | st.just(changes.WebhookRemoved("https://example.com/"))
)


def recorded(history: list[changes.Change], account: int = 1) -> list[changes.RecordedChange]:
    return [
        changes.RecordedChange(sequence * 2 + account, sequence, account, "toll publish", change)
        for sequence, change in enumerate(history)
    ]


@settings(deadline=None)
@given(st.lists(_later, max_size=20), st.integers(0, 40))
def test_folding_on_from_any_place_gives_the_same_state(history, cut):
    entries = recorded([*_begin, *history])
    whole = fold_changes(Configuration(), entries)
    assert fold_changes(fold_changes(Configuration(), entries[:cut]), entries[cut:]) == whole
    assert whole.sequence == entries[-1].sequence


_of_lists = st.builds(
    changes.EntriesChanged,
    st.sampled_from(("trusted", "blocked")),
    st.just("put"),
    st.just(1),
    st.just(()),
    st.sampled_from((None, None, 1)),
) | st.builds(changes.ListReplaced, st.just("trusted"), st.integers(1, 9), st.just(1))


@settings(deadline=None)
@given(st.lists(_of_lists | _later, max_size=20))
def test_folding_all_at_once_gives_the_state_of_folding_one_after_the_other(history):
    wanted = changes.Proposed(1, changes.EntriesWanted("blocked", "put", 0, ()), "", "")
    begin = [*_begin, changes.ListMade("blocked", ListSpec("string")), wanted]
    entries = recorded([*begin, *history])
    assert fold_changes(Configuration(), entries) == reduce(fold_change, entries, Configuration())


@settings(deadline=None)
@given(st.lists(_later, max_size=20))
def test_a_change_leaves_the_state_before_it_and_other_accounts_alone(history):
    market = [
        changes.RecordedChange(1, 0, 2, "", changes.AccountCreated("market")),
        changes.RecordedChange(2, 0, 2, "", changes.KeyCreated("toll_m", b"m", ("admin",))),
    ]
    state = fold_changes(Configuration(), [*market, *recorded(_begin)])
    other = state.accounts[2]
    for entry in recorded(history):
        before, text = state, repr(state)
        state = fold_change(state, entry)
        assert repr(before) == text
        assert state.accounts[2] is other
        assert state.keys[b"m"].account == 2


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 5), st.sampled_from((0, 1, 3, 9)), st.sampled_from(("closed", "open"))
        ),
        max_size=12,
    )
)
def test_alert_marks_are_kept_as_long_as_their_alerts_can_be_and_no_longer_than_those_after(
    history,
):
    rare = changes.SettingsChanged(changes.AccountSettings(retention_days=2), ("retention_days",))
    known = fold_changes(Configuration(), recorded([*_begin, rare]))
    expected, at = {}, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "LASTING_MARKS", 0)
        for sequence, (alert, days, to) in enumerate(history, start=100):
            at += days * DAY
            known = fold_change(known, marked(sequence, at, alert, to))
            expected[alert, 0] = at
            expected = {of: when for of, when in expected.items() if when >= at - 3 * DAY}
            marks = known.accounts[1].alert_marks
            assert {of: mark.at for of, mark in marks.items()} == expected


def marked(sequence, at, alert, to="closed"):
    return changes.RecordedChange(sequence, at, 1, "ana", changes.AlertMarked(alert, 0, to, ""))


def test_a_clock_far_ahead_drops_no_marks_of_the_newest_alerts(monkeypatch):
    monkeypatch.setattr(state, "LASTING_MARKS", 3)
    known = fold_changes(Configuration(), recorded(_begin))
    for alert, at in enumerate((0, 1, 1000 * 365 * DAY, 2), start=1):
        known = fold_change(known, marked(100 + alert, at, alert))
    assert [of for of, _ in known.accounts[1].alert_marks] == [1, 2, 3, 4]


def test_only_good_keys_open_anything():
    entries = recorded([*_begin, changes.KeyRevoked("toll_a")])
    state = fold_changes(Configuration(), entries)
    assert set(state.keys) == {b"toll_b"}
    assert set(state.accounts[1].keys) == {"toll_a", "toll_b"}


@settings(deadline=None)
@given(st.lists(_later, max_size=20), st.sampled_from(["ana", *KEYS]))
def test_a_session_is_over_with_the_user_or_the_key_that_it_came_from(history, of):
    gone = changes.UserRemoved(of) if of == "ana" else changes.KeyRevoked(of)
    state = fold_changes(Configuration(), recorded([*_begin, *history, gone]))
    left = {each.parent or each.owner for each in state.sessions.values()}
    assert of not in left


def test_one_account_s_sessions_and_links_make_room_for_themselves_alone(monkeypatch):
    monkeypatch.setattr(state, "MAX_SESSIONS", 4)
    monkeypatch.setattr(sessions, "MAX_LINKS", 4)
    known = fold_changes(
        Configuration(),
        [
            changes.RecordedChange(number, 0, number, "", changes.AccountCreated(f"shop{number}"))
            for number in (1, 2)
        ],
    )
    links = sessions.Sessions()
    code = links.make_link(2, "rui", None, 0)
    for number in range(9):
        account = 2 if number == 0 else 1
        started = changes.SessionStarted(b"%d" % number, "ana", 99)
        known = fold_change(known, changes.RecordedChange(3 + number, 0, account, "", started))
        links.make_link(1, "ana", None, 0)
    assert list(known.sessions) == [b"0", b"6", b"7", b"8"]
    assert links.follow_link(code, 1).account == 2
