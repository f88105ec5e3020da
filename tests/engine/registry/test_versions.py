from __future__ import annotations

import pytest

from tollkeeper.engine.registry import versions
from tollkeeper.engine.registry.errors import Conflict, NotFound
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Version
from tollkeeper.engine.registry.versions import (
    Terms,
    activate,
    active_version,
    deactivate,
    encode_file,
    find_version,
    store_version,
    version_in_force,
)

HOUR = 3_600_000_000


@pytest.fixture
def stored(registry, rule):
    """Three versions of the rule `checkout`, none published."""
    for text in ("first", "second", "third"):
        registry.record(store_version(registry.account, encode_file(rule()), text, {}))
    return registry


def test_versions_are_numbered_from_one_for_each_kind_and_name(registry, rule, scorecard):
    programs = [rule(), rule(), rule("mobile"), scorecard]
    numbers = []
    for sequence, program in enumerate(programs):
        change = store_version(registry.account, encode_file(program), f"text {sequence}", {})
        registry.record(change)
        numbers.append((change.kind, change.name, change.number))
    assert numbers == [
        ("rule", "checkout", 1),
        ("rule", "checkout", 2),
        ("rule", "mobile", 1),
        ("scorecard", "bot_behaviour", 1),
    ]


def test_a_version_keeps_its_text_time_author_and_checksum(registry, rule):
    change = store_version(
        registry.account, encode_file(rule()), "rule checkout", {"cards": "definitions"}
    )
    recorded = registry.record(change, by="toll publish")
    version = find_version(registry.account, "rule", "checkout", 1)
    assert (version.text, version.uses) == ("rule checkout", {"cards": "definitions"})
    assert (version.stored_by, version.stored_at) == ("toll publish", recorded.at)
    assert len(bytes.fromhex(version.checksum)) == 32


def test_a_version_loads_as_it_was_checked(registry, rule):
    registry.record(store_version(registry.account, encode_file(rule()), "text", {}))
    version = find_version(registry.account, "rule", "checkout", 1)
    assert decode_program(version.program) == rule()


def test_the_text_of_the_newest_version_gives_that_version_again(stored, rule):
    again = store_version(stored.account, encode_file(rule()), "third", {})
    assert isinstance(again, Version)
    assert again.number == 3


def test_the_text_of_an_older_version_makes_a_new_one(stored, rule):
    assert store_version(stored.account, encode_file(rule()), "first", {}).number == 4


def test_the_same_text_with_other_definitions_makes_a_new_version(stored, rule):
    assert (
        store_version(stored.account, encode_file(rule()), "third", {"cards": "changed"}).number
        == 4
    )


def test_an_author_who_missed_a_version_gets_a_conflict(stored, rule):
    with pytest.raises(Conflict, match="the newest version of `checkout` is 3, not 2"):
        store_version(stored.account, encode_file(rule()), "fourth", {}, expected=2)
    assert store_version(stored.account, encode_file(rule()), "fourth", {}, expected=3).number == 4


def test_storing_publishes_nothing(stored):
    assert active_version(stored.account, "rule", "checkout") is None


def test_any_version_can_be_published_and_rolled_back_to(stored):
    active = []
    for number in (1, 3, 2):
        stored.record(activate(stored.account, "rule", "checkout", number))
        active.append(active_version(stored.account, "rule", "checkout").text)
    assert active == ["first", "third", "second"]


def test_unpublishing_leaves_the_versions(stored):
    stored.record(activate(stored.account, "rule", "checkout", 3))
    stored.record(deactivate(stored.account, "rule", "checkout"))
    assert active_version(stored.account, "rule", "checkout") is None
    assert find_version(stored.account, "rule", "checkout", 3).text == "third"


def test_what_is_not_published_cannot_be_unpublished(stored):
    with pytest.raises(NotFound, match="rule `checkout` is not published"):
        deactivate(stored.account, "rule", "checkout")


def test_a_state_taken_before_a_publish_goes_on_with_its_own_version(stored):
    stored.record(activate(stored.account, "rule", "checkout", 1))
    before = stored.account
    stored.record(activate(stored.account, "rule", "checkout", 2))
    assert active_version(before, "rule", "checkout").number == 1
    assert active_version(stored.account, "rule", "checkout").number == 2


@pytest.mark.parametrize("number", [-1, 0, 4, 10**30])
def test_an_unknown_version_is_not_found(stored, number):
    with pytest.raises(NotFound) as refused:
        activate(stored.account, "rule", "checkout", number)
    assert refused.value.violations[0].field == "version"


def test_an_unknown_name_or_another_kind_is_not_found(stored):
    with pytest.raises(NotFound, match="there is no rule `mobile`"):
        activate(stored.account, "rule", "mobile", 1)
    with pytest.raises(NotFound, match="there is no event type `checkout`"):
        activate(stored.account, "event", "checkout", 1)


def test_an_event_is_checked_against_the_version_in_force_at_its_timestamp(stored):
    first = stored.record(activate(stored.account, "rule", "checkout", 1))
    planned = first.at + 5 * HOUR
    stored.record(activate(stored.account, "rule", "checkout", 2, Terms(planned)))
    lineage = stored.account.files["rule", "checkout"]
    numbers = [
        version_in_force(lineage, at).number
        for at in (first.at - HOUR, first.at, planned - 1, planned, planned + HOUR)
    ]
    assert numbers == [1, 1, 1, 2, 2]


def test_an_activation_takes_the_place_of_one_that_was_planned(stored):
    first = stored.record(activate(stored.account, "rule", "checkout", 1))
    planned = first.at + 5 * HOUR
    stored.record(activate(stored.account, "rule", "checkout", 2, Terms(planned)))
    stored.record(activate(stored.account, "rule", "checkout", 3))
    lineage = stored.account.files["rule", "checkout"]
    assert version_in_force(lineage, planned + HOUR).number == 3


def test_nothing_is_in_force_once_unpublished(stored):
    stored.record(activate(stored.account, "rule", "checkout", 1))
    stored.record(deactivate(stored.account, "rule", "checkout"))
    assert version_in_force(stored.account.files["rule", "checkout"], 0) is None


def test_an_account_has_so_many_files_of_a_kind_and_no_more(stored, rule, scorecard, monkeypatch):
    monkeypatch.setattr(versions, "MAX_PROGRAMS", {"rule": 1, "scorecard": 1})
    assert store_version(stored.account, encode_file(rule()), "fourth", {}).number == 4
    assert store_version(stored.account, encode_file(scorecard), "first", {}).number == 1
    with pytest.raises(Conflict, match="at most 1 rules"):
        store_version(stored.account, encode_file(rule("mobile")), "first", {})


def test_the_versions_of_an_account_take_so_much_memory_and_no_more(stored, rule, monkeypatch):
    file = encode_file(rule())
    held = 3 * len(file.program) + len("firstsecondthird")
    monkeypatch.setattr(versions, "MAX_STORED", held + len(file.program) + 6)
    assert store_version(stored.account, file, "fourth", {}).number == 4
    with pytest.raises(Conflict, match="MiB"):
        store_version(stored.account, file, "another", {})
