"""Create an account's lists and tables, and change their entries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from tollkeeper.engine.intake.violations import Violation, ViolationType
from tollkeeper.engine.journal.entries import Addition, ListEntry, Removal, Replacement
from tollkeeper.engine.lists.contents import Contents, has_value
from tollkeeper.engine.lists.entries import canonical_value, read_entry
from tollkeeper.engine.lists.spec import (
    COLUMN_TYPES,
    ColumnType,
    EntryType,
    ListSpec,
    Lookup,
    Spec,
    TableSpec,
    column_of_type,
)
from tollkeeper.engine.registry.changes import (
    EntriesChanged,
    EntriesWanted,
    ListMade,
    ListReplaced,
)
from tollkeeper.engine.registry.errors import Forbidden, Invalid, NotFound
from tollkeeper.engine.registry.names import check_name
from tollkeeper.engine.registry.state import Account, ListState
from tollkeeper.grammar.program import ListUse, TableUse

MAX_AUDITED_VALUES = 100
MAX_PROPOSED_ENTRIES = 1000
MAX_COLUMNS = 64
MAX_LISTS = 500
MAX_ENTRIES = 5_000_000
"""How many entries all lists and tables of an account hold together."""
_MAX_CHOICES = 1000

_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_OWN_NAMES = ("value", "columns", "expires_at", "note", "by")


def find_list(account: Account, name: str) -> ListState:
    """Raises `NotFound`."""
    entries = account.lists.get(name)
    if entries is None:
        raise NotFound("list", f"there is no list `{name}`")
    return entries


def make_list(account: Account, name: str, spec: Spec) -> ListMade | None:
    """The creation of an empty list or table; None when a suitable one exists.

    A table is suitable when it has the requested columns, and perhaps more. Raises `Invalid` when
    the existing one has another type, and when the account has as many as it may.
    """
    check_name("list.name", name)
    there = account.lists.get(name)
    if there is None:
        _check_list_count(len(account.lists) + 1)
        return ListMade(name, spec)
    if not _serves(there.spec, spec):
        message = f"`{name}` is {_describe(there.spec)}, not {_describe(spec)}"
        raise Invalid.at("list.type", "invalid_value", message)
    return None


def make_declared_lists(
    account: Account, lists: Sequence[ListUse], tables: Sequence[TableUse]
) -> list[ListMade]:
    """The lists and tables that a program declares and the account does not have yet.

    Raises `Invalid` with all those that the account has with another type.
    """
    specs: dict[str, Spec] = {use.name: ListSpec(use.type) for use in lists}
    specs |= {use.name: table_spec(use) for use in tables}
    made: list[ListMade | None] = []
    violations: list[Violation] = []
    for name, spec in specs.items():
        try:
            made.append(make_list(account, name, spec))
        except Invalid as error:
            violations.extend(error.violations)
    if violations:
        raise Invalid(violations)
    new = [change for change in made if change is not None]
    _check_list_count(len(account.lists) + len(new))
    return new


def table_spec(use: TableUse) -> TableSpec:
    """The spec of a table that a program declares."""
    return TableSpec(use.by, {name: column_of_type(type_) for name, type_ in use.columns.items()})


def read_spec(sent: Mapping[str, object]) -> Spec:
    """The spec in `{"type"}` of a list, or `{"by", "columns"}` of a table.

    A column's type is a name or an array of strings to choose from. Raises `Invalid`.
    """
    if sent.get("by") is None and sent.get("columns") is None:
        type_ = sent.get("type")
        if type_ is None:
            raise Invalid.at("type", "missing", "a list needs a type, a table `by`")
        if type_ not in get_args(EntryType):
            known = ", ".join(f"`{name}`" for name in get_args(EntryType))
            raise Invalid.at("type", "invalid_value", f"the type of a list is one of {known}")
        return ListSpec(type_)  # type: ignore[arg-type]
    violations = []
    if sent.get("type") is not None:
        message = "a list has a type, a table `by` and `columns`, and nothing has both"
        violations.append(Violation("type", "invalid_value", message))
    by = sent.get("by")
    if by not in get_args(Lookup):
        known = ", ".join(f"`{name}`" for name in get_args(Lookup))
        violations.append(
            Violation(
                "by",
                "missing" if by is None else "invalid_value",
                f"a table is looked up by {known}",
            )
        )
    columns, wrong = _read_columns(sent.get("columns"))
    violations.extend(wrong)
    if violations:
        raise Invalid(violations)
    return TableSpec(by, columns)  # type: ignore[arg-type]


def put_entries(
    account: Account, name: str, sent: Iterable[object], by: str
) -> tuple[EntriesChanged, Addition]:
    """Add entries, or renew those with the same value: the change, and what the journal writes.

    Of two entries with one value the later counts. Raises `NotFound`, and `Invalid` with all
    violations, each at its path (`entries[3].columns.asn`).
    """
    return addition(name, _read_entries(account, name, sent, by))


def _read_entries(
    account: Account, name: str, sent: Iterable[object], by: str
) -> tuple[ListEntry, ...]:
    spec = find_list(account, name).spec
    entries: dict[str, ListEntry] = {}
    violations: list[Violation] = []
    for place, item in enumerate(sent):
        read = read_entry(spec, item, f"entries[{place}]", by)
        if isinstance(read, ListEntry):
            entries[read.value] = read
        else:
            violations.extend(read)
    if violations:
        raise Invalid(violations)
    if not entries:
        raise Invalid.at("entries", "missing", "there are no entries")
    return tuple(entries.values())


def _check_list_count(count: int) -> None:
    """Raise `Invalid` if an account may not have `count` lists and tables."""
    if count > MAX_LISTS:
        message = f"an account has at most {MAX_LISTS} lists and tables"
        raise Invalid.at("list.name", "out_of_range", message)


def check_entry_count(count: int) -> None:
    """Raise `Invalid` if an account's lists and tables may not hold `count` entries."""
    if count > MAX_ENTRIES:
        message = f"the lists and tables of an account hold at most {MAX_ENTRIES:,} entries"
        raise Invalid.at("entries", "out_of_range", message)


def addition(name: str, entries: Sequence[ListEntry]) -> tuple[EntriesChanged, Addition]:
    """The change that adds or renews these entries, and what the journal writes."""
    values = tuple(entry.value for entry in entries[:MAX_AUDITED_VALUES])
    return EntriesChanged(name, "put", len(entries), values), Addition(name, tuple(entries))


def remove_entries(
    account: Account, name: str, sent: Iterable[object], contents: Contents
) -> tuple[EntriesChanged, Removal]:
    """Remove the entries with these values; `contents` are the list's present ones.

    Raises `NotFound` for the list or for values that are not in it, `Invalid` for invalid values.
    """
    values = _read_values(account, name, sent)
    for value, place in values.items():
        if not has_value(contents, value):
            message = f"there is no entry `{value}` in `{name}`"
            raise NotFound(f"entries[{place}].value", message)
    return removal(name, tuple(values))


def removal(name: str, values: tuple[str, ...]) -> tuple[EntriesChanged, Removal]:
    """The change that removes the entries with these canonical values, and what the journal writes."""
    change = EntriesChanged(name, "remove", len(values), values[:MAX_AUDITED_VALUES])
    return change, Removal(name, values)


def _read_values(account: Account, name: str, sent: Iterable[object]) -> dict[str, int]:
    """The canonical values, each with its index in the request."""
    spec = find_list(account, name).spec
    values: dict[str, int] = {}
    violations: list[Violation] = []
    for place, item in enumerate(sent):
        try:
            values.setdefault(canonical_value(spec, item), place)
        except ValueError as error:
            path = f"entries[{place}].value"
            violations.append(Violation(path, "invalid_value", str(error)))
    if violations:
        raise Invalid(violations)
    if not values:
        raise Invalid.at("entries", "missing", "there are no entries")
    return values


def want_entries(
    account: Account, name: str, action: Literal["put", "remove"], sent: Sequence[object]
) -> EntriesWanted:
    """A proposable change of entries.

    Raises what `put_entries` and `remove_entries` raise, except for values that are not in the
    list.
    """
    if len(sent) > MAX_PROPOSED_ENTRIES:
        message = f"at most {MAX_PROPOSED_ENTRIES} entries are proposed at once"
        raise Invalid.at("entries", "out_of_range", message)
    entries = (
        _read_entries(account, name, sent, "")
        if action == "put"
        else tuple(ListEntry(value) for value in _read_values(account, name, sent))
    )
    return EntriesWanted(name, action, len(entries), entries)


def make_wanted(
    account: Account, wanted: EntriesWanted, contents: Contents
) -> tuple[EntriesChanged, Addition | Removal]:
    """The change that a proposal of entries leads to. Raises `NotFound`."""
    if wanted.action == "put":
        return addition(wanted.list, wanted.entries)
    values = [entry.value for entry in wanted.entries]
    return remove_entries(account, wanted.list, values, contents)


def check_entries_alone(account: Account) -> None:
    """Raise `Forbidden` where entries need another person's approval.

    Test accounts never need it: they have nobody to approve.
    """
    if account.settings.approvals.lists and account.live is None:
        raise Forbidden("approval", "another person must approve this: propose it")


def replace_entries(
    account: Account, name: str, content: int, count: int
) -> tuple[ListReplaced, Replacement]:
    """Replace a list's entries by a staged content of `count` entries; raises `NotFound`."""
    find_list(account, name)
    return ListReplaced(name, content, count), Replacement(name, content)


def _read_columns(sent: object) -> tuple[dict[str, ColumnType], list[Violation]]:
    if not isinstance(sent, Mapping) or not 1 <= len(sent) <= MAX_COLUMNS:
        message = f"a table has 1 to {MAX_COLUMNS} columns, an object of names and types"
        return {}, [Violation("columns", _columns_violation(sent), message)]
    columns: dict[str, ColumnType] = {}
    violations = []
    for name, type_ in sent.items():
        if not _COLUMN.fullmatch(name) or name in _OWN_NAMES:
            taken = ", ".join(f"`{own}`" for own in _OWN_NAMES)
            message = f"a column's name is letters, digits and `_`, and none of {taken}"
            violations.append(Violation(f"columns.{name}", "invalid_format", message))
        elif isinstance(type_, str) and type_ in COLUMN_TYPES:
            columns[name] = type_  # type: ignore[assignment]
        elif (
            isinstance(type_, list | tuple)
            and 1 <= len(type_) <= _MAX_CHOICES
            and all(isinstance(choice, str) and choice for choice in type_)
        ):
            columns[name] = tuple(type_)
        else:
            known = ", ".join(f"`{known}`" for known in COLUMN_TYPES)
            message = f"a column's type is one of {known}, or an array of strings to choose from"
            violations.append(Violation(f"columns.{name}", "invalid_value", message))
    return columns, violations


def _columns_violation(columns: object) -> ViolationType:
    if columns is None:
        return "missing"
    return "out_of_range" if isinstance(columns, Mapping) else "invalid_type"


def _serves(there: Spec, wanted: Spec) -> bool:
    if isinstance(there, TableSpec) and isinstance(wanted, TableSpec):
        return there.by == wanted.by and wanted.columns.items() <= there.columns.items()
    return there == wanted


def _describe(spec: Spec) -> str:
    if isinstance(spec, ListSpec):
        return f"a list of type `{spec.type}`"
    columns = ", ".join(
        f"{name}: {type_ if isinstance(type_, str) else ' | '.join(type_)}"
        for name, type_ in spec.columns.items()
    )
    return f"a table by {spec.by} with `{columns}`"
