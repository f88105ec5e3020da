from __future__ import annotations

import pytest

from tollkeeper.engine.lists.contents import add_entries, build_contents
from tollkeeper.engine.lists.spec import ListSpec, TableSpec
from tollkeeper.engine.registry import lists
from tollkeeper.engine.registry.errors import Invalid, NotFound
from tollkeeper.engine.registry.lists import (
    find_list,
    make_declared_lists,
    make_list,
    put_entries,
    read_spec,
    remove_entries,
    replace_entries,
)
from tollkeeper.grammar.program import ListUse, TableUse
from tollkeeper.grammar.types import Boolean, Instant, Ip, Number, String

PLACES = TableSpec("network", {"country": "string", "asn": "number"})


@pytest.fixture
def listed(registry):
    """A list `trusted` of strings, a list `offices` of addresses, a table `places`."""
    for name, spec in (
        ("trusted", ListSpec("string")),
        ("offices", ListSpec("ip")),
        ("places", PLACES),
    ):
        registry.record(make_list(registry.account, name, spec))
    return registry


def fields(refused) -> list[str]:
    return [violation.field for violation in refused.value.violations]


def test_making_a_list_again_changes_nothing(listed):
    assert make_list(listed.account, "trusted", ListSpec("string")) is None


def test_another_type_than_the_existing_one_is_refused(listed):
    with pytest.raises(Invalid, match="`trusted` is a list of type `string`, not a list of type"):
        make_list(listed.account, "trusted", ListSpec("ip"))
    with pytest.raises(Invalid, match="`places` is a table by network with"):
        make_list(listed.account, "places", TableSpec("prefix", PLACES.columns))


def test_a_table_serves_who_asks_for_some_of_its_columns(listed):
    assert make_list(listed.account, "places", TableSpec("network", {"asn": "number"})) is None
    with pytest.raises(Invalid):
        make_list(listed.account, "places", TableSpec("network", {"asn": "string"}))
    with pytest.raises(Invalid):
        make_list(listed.account, "places", TableSpec("network", {"city": "string"}))


def test_what_a_program_declares_is_made_empty(listed):
    columns = {
        "country": String(),
        "funding": String(("credit", "debit")),
        "risk": Number(6),
        "active": Boolean(),
        "seen": Instant(),
        "gateway": Ip(),
    }
    made = make_declared_lists(
        listed.account,
        [ListUse("trusted", "string"), ListUse("amounts", "number")],
        [TableUse("bins", "prefix", columns)],
    )
    for change in made:
        listed.record(change)
    assert [change.name for change in made] == ["amounts", "bins"]
    assert find_list(listed.account, "bins").spec == TableSpec(
        "prefix",
        {
            "country": "string",
            "funding": ("credit", "debit"),
            "risk": "number",
            "active": "boolean",
            "seen": "instant",
            "gateway": "ip",
        },
    )


def test_all_declared_lists_of_another_type_are_named(listed):
    with pytest.raises(Invalid) as refused:
        make_declared_lists(
            listed.account,
            [ListUse("trusted", "number"), ListUse("offices", "string"), ListUse("more", "ip")],
            [],
        )
    assert len(refused.value.violations) == 2


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ({"type": "ip"}, ListSpec("ip")),
        (
            {"by": "prefix", "columns": {"country": "string", "funding": ["credit", "debit"]}},
            TableSpec("prefix", {"country": "string", "funding": ("credit", "debit")}),
        ),
    ],
)
def test_the_form_of_a_list_is_read(given, spec):
    assert read_spec(given) == spec


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, ["type"]),
        ({"type": "strings"}, ["type"]),
        ({"type": ["ip"]}, ["type"]),
        ({"by": "prefix"}, ["columns"]),
        ({"by": ["prefix"], "columns": {"a": "string"}}, ["by"]),
        ({"columns": {"a": "string"}}, ["by"]),
        ({"by": "value", "columns": {}}, ["columns"]),
        ({"by": "value", "columns": {str(n): "string" for n in range(65)}}, ["columns"]),
        (
            {"by": "value", "columns": {"a b": "string", "note": "ip"}},
            ["columns.a b", "columns.note"],
        ),
        (
            {"by": "value", "columns": {"a": "text", "b": [], "c": [1], "d": {}}},
            [f"columns.{c}" for c in "abcd"],
        ),
    ],
)
def test_a_form_that_is_none_is_refused_at_its_place(given, wrong):
    with pytest.raises(Invalid) as refused:
        read_spec(given)
    assert fields(refused) == wrong


def test_entries_are_kept_in_one_form_and_the_later_of_two_counts(listed):
    change, work = put_entries(
        listed.account,
        "offices",
        [
            {"value": "10.0.0.1", "note": "first"},
            {"value": "::ffff:10.0.0.1", "note": "second", "expires_at": "2030-01-01T00:00:00Z"},
            {"value": "2001:DB8::/32"},
        ],
        by="toll_abcdefgh",
    )
    assert [(entry.value, entry.note) for entry in work.entries] == [
        ("10.0.0.1", "second"),
        ("2001:db8::/32", None),
    ]
    assert (change.count, change.values) == (2, ("10.0.0.1", "2001:db8::/32"))
    assert {entry.by for entry in work.entries} == {"toll_abcdefgh"}


def test_all_that_is_wrong_with_entries_comes_back_together(listed, snapshot):
    given = [
        {"value": "10.0.0.0/8"},
        {"value": "10.0.0.1/8", "columns": {"asn": "many", "city": "Rome"}},
        {"columns": {"asn": 1}},
        "10.0.0.0/8",
        {"value": "nowhere", "expires_at": "tomorrow", "note": 3},
        {"value": "::1%eth0", "columns": []},
        {"value": 7, "note": "x" * 257},
    ]
    with pytest.raises(Invalid) as refused:
        put_entries(listed.account, "places", given, by="toll_abcdefgh")
    lines = [f"{v.field}  {v.type}: {v.message}" for v in refused.value.violations]
    assert "\n".join(lines) == snapshot


def test_entries_are_removed_in_whatever_form_they_are_named(listed):
    contents = build_contents(ListSpec("ip"), ())
    contents = add_entries(
        contents, put_entries(listed.account, "offices", [{"value": "10.0.0.1"}], "")[1].entries
    )
    change, work = remove_entries(listed.account, "offices", ["::ffff:10.0.0.1"], contents)
    assert work.values == ("10.0.0.1",)
    assert change.action == "remove"


def test_removing_what_is_not_there_is_not_found_and_removes_nothing(listed):
    contents = add_entries(
        build_contents(ListSpec("string"), ()),
        put_entries(listed.account, "trusted", [{"value": "ana"}], "")[1].entries,
    )
    with pytest.raises(NotFound) as refused:
        remove_entries(listed.account, "trusted", ["ana", "bob"], contents)
    assert fields(refused) == ["entries[1].value"]


def test_an_unknown_list_is_not_found(listed):
    with pytest.raises(NotFound):
        put_entries(listed.account, "nobody", [{"value": "ana"}], "")
    with pytest.raises(NotFound):
        replace_entries(listed.account, "nobody", 1, 0)


def test_no_entries_are_refused(listed):
    with pytest.raises(Invalid):
        put_entries(listed.account, "trusted", [], "")
    with pytest.raises(Invalid):
        remove_entries(listed.account, "trusted", [], build_contents(ListSpec("string"), ()))


def test_a_change_of_many_entries_lists_the_first_hundred(listed):
    given = [{"value": f"customer-{number}"} for number in range(500)]
    change, _ = put_entries(listed.account, "trusted", given, "")
    assert (change.count, len(change.values)) == (500, 100)


def test_replacing_the_entries_gives_the_list_another_content(listed):
    change, work = replace_entries(listed.account, "trusted", content=12, count=1_000_000)
    recorded = listed.record(change)
    assert (work.list, work.content) == ("trusted", 12)
    entries = find_list(listed.account, "trusted")
    assert (entries.content, entries.changed) == (12, recorded.sequence)


def test_an_account_has_so_many_lists_and_no_more(listed, monkeypatch):
    monkeypatch.setattr(lists, "MAX_LISTS", 4)
    declared = [ListUse(name, "string") for name in ("trusted", "fourth", "fifth")]
    with pytest.raises(Invalid, match="at most 4 lists and tables"):
        make_declared_lists(listed.account, declared, [])
    assert len(make_declared_lists(listed.account, declared[:2], [])) == 1
    listed.record(make_list(listed.account, "fourth", ListSpec("string")))
    with pytest.raises(Invalid, match="at most 4 lists and tables"):
        make_list(listed.account, "fifth", ListSpec("string"))
