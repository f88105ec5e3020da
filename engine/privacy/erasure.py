"""Erase one person's data from payments, events, alerts, lists and windows.

The request is a change in the journal, open until the erasure is done. The audit log and the
decisions stay. Each step finds by itself what is left to do, and payments with the identifier, the
only place with a person's addresses, come last, one of each address after all others: so an
interrupted run can be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tollkeeper.engine.events.erase_alerts import follow_journal
from tollkeeper.engine.facts.facts import StoredFacts
from tollkeeper.engine.journal.contract import Damaged
from tollkeeper.engine.journal.damage import UNREADABLE
from tollkeeper.engine.journal.entries import AMENDABLE, Entry, Kind, Removal
from tollkeeper.engine.journal.inspect import name_entry
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.labels.label import decode_label, encode_label
from tollkeeper.engine.labels.notes import decode_note, encode_note
from tollkeeper.engine.labels.payment_state import payment_state
from tollkeeper.engine.lists.contents import Contents, has_value, remove_values
from tollkeeper.engine.lists.entries import canonical_value
from tollkeeper.engine.log import get_logger
from tollkeeper.engine.make_change import make_change
from tollkeeper.engine.privacy.forgetting import payment_record, rewriting, uncount
from tollkeeper.engine.privacy.person import (
    ERASED_VALUE,
    Person,
    address_of,
    erase_event,
    erase_payment,
    erase_transitions,
    unless_in,
)
from tollkeeper.engine.programs.event_contract import Contract
from tollkeeper.engine.programs.event_versions import contract_of
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.publish.verbs import AccountVerb, Effect
from tollkeeper.engine.registry.changes import (
    EntriesChanged,
    EntriesWanted,
    ErasureAsked,
    PersonErased,
    ProposalRefused,
    Proposed,
    decode_change,
    encode_change,
)
from tollkeeper.engine.registry.person_entries import PersonEntries
from tollkeeper.engine.registry.state import OpenErasure
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.search.find_naming import NamingEntries, find_naming
from tollkeeper.engine.stored_records import decode_event, decode_recorded, event_reader

_encode = msgspec.json.Encoder().encode
_PAYMENT_KINDS = (Kind.PAYMENT, Kind.UPDATE)


async def erase_user(engine: Engine, account: int, by: str, user: str) -> PersonErased:
    """Erase all data of a user, and record in the audit log how much that was.

    Raises `JournalError`; once the request is in the journal, its owner does the rest, for which it
    remembers what the windows still count of entries that no longer name the user. Data that arrive
    while it runs are erased too.
    """
    await _ask(engine, account, by, user)
    found = engine.unfinished_erasures.setdefault((account, user), PersonEntries(by))
    async with engine.publishing[account]:
        return await _erase(engine, account, by, user, found)


async def _ask(engine: Engine, account: int, by: str, user: str) -> None:
    """Put the request into the journal, unless it is there and its user can be read from it."""
    person = Person(user).digest
    async with engine.changing:
        known = engine.state.accounts[account].erasures.get(person)
        if known is None or _unseal(engine, account, person, known) is None:
            sealed = engine.folder_key.seal(user, _sealed_for(account, person))
            await make_change(engine, account, by, ErasureAsked(person, sealed))


def _unseal(engine: Engine, account: int, person: str, erasure: OpenErasure) -> str | None:
    """The user whose erasure is open; None when nothing is left to erase, or with another key."""
    if erasure.sealed is None:
        return None
    return engine.folder_key.unseal(erasure.sealed, _sealed_for(account, person))


def _sealed_for(account: int, person: str) -> str:
    return f"{account} {person}"


async def take_up_erasures(engine: Engine) -> None:
    """Add the erasures that a former owner of the journal left open to the unfinished ones, and close
    those of which nothing is left to erase, before traffic comes. Raises `JournalError`.
    """
    for account, known in engine.state.accounts.items():
        for person, erasure in known.erasures.items():
            user = _unseal(engine, account, person, erasure)
            if user is not None:
                engine.unfinished_erasures.setdefault((account, user), PersonEntries(erasure.by))
            elif erasure.sealed is None:
                async with engine.changing:
                    erased = PersonErased(person, 0, 0, 0, {})
                    await make_change(engine, account, erasure.by, erased)
            else:
                reason = "it was asked for under another key of the folder: send it again"
                get_logger().warning("not_erased", account=account, reason=reason)


async def finish_erasure(engine: Engine, account: int, user: str) -> None:
    """Make an erasure that failed, unless it is done meanwhile. Raises `JournalError`."""
    async with engine.publishing[account]:
        found = engine.unfinished_erasures.get((account, user))
        if found is not None:
            await _erase(engine, account, found.by, user, found)


async def _erase(
    engine: Engine, account: int, by: str, user: str, found: PersonEntries
) -> PersonErased:
    # Recorded again, for when two requests for one person overlap: the first closes the record.
    await _ask(engine, account, by, user)
    async with rewriting(engine, account):
        person = await asyncio.to_thread(_find_person, engine, account, user, found)
        named = await asyncio.to_thread(_find_named, engine, account, person)
        await engine.journal.forget_keys(named.entries)
        await _refuse_proposals(engine, account, by, person)
        entries = await _erase_from_lists(engine, account, by, person)
        rewrite = partial(_rewrite, engine.journal, account, person)
        await rewrite(_in_changes(person), Kind.CHANGE)
        in_events = _in_events(person, found, _contracts(engine, account))
        await rewrite(in_events, Kind.EVENT, at=named.entries, after=named.last)
        for kind, change in ((Kind.LABEL, _in_labels), (Kind.NOTE, _in_notes)):
            in_texts = change(person, named.payments)
            await engine.journal.rewrite(
                account, in_texts, (kind,), at=named.worded, after=named.last
            )
        while await _erase_reports(engine, account, person, named, found):
            named = await asyncio.to_thread(_find_named, engine, account, person)
        alerts = await follow_journal(engine, account)
        await _recount_events(engine, account, found)
        erased = PersonErased(
            person=person.digest,
            payments=len(found.first),
            events=len(found.events),
            alerts=alerts,
            list_entries=entries,
        )
        # Not later: an identifier that is left is one of an open erasure.
        await engine.journal.rewrite(account, _without_identifier, (Kind.CHANGE,), [person.digest])
        async with engine.changing:
            await make_change(engine, account, by, erased)
    engine.unfinished_erasures.pop((account, user), None)
    return erased


async def _erase_reports(
    engine: Engine, account: int, person: Person, named: _Named, found: PersonEntries
) -> bool:
    """Erase the payments in `named`, with their updates; whether others arrived meanwhile.

    Nothing else changes them until the windows count what is left: it would be taken out of the
    windows as it is stored, and they count it as it was.
    """
    later: set[str] = set()
    async with engine.locks.of_all("payment", account, named.payments):
        erase = _in_reports(person, named.payments, found, later)
        in_reports = partial(_rewrite_reports, engine.journal, account, person, named)
        # One payment of each address comes last: it alone tells that the address is the person's.
        await in_reports(_unless(lambda entry: _is_identified(person, entry), erase))
        await in_reports(_unless(lambda entry: entry.id in found.telling, erase))
        await _note_telling(engine, account, found)
        await _uncount(engine, account, found)
        # Not earlier: the windows counted with the lists' former entries.
        await engine.journal.forget_values(account, person.names)
        await in_reports(erase)
        await _recount(engine, account, found)
    return bool(later)


def _find_person(engine: Engine, account: int, user: str, found: PersonEntries) -> Person:
    """The person, with the e-mail addresses that payments have, or had, with the identifier."""
    person = Person(user)
    telling = {
        address_of(_decode_payment(entry).payment): entry.id
        for entry in _naming(engine.journal, account, person, _look_up(engine, account, person))
        if _pays(person, entry)
    }
    found.emails |= {address for address in telling if address is not None}
    found.telling = {*telling.values()}
    return Person(user, found.emails)


class _Named(NamedTuple):
    """The sequence numbers of `entries` that may name the person, and of all entries with free text
    (`worded`), both complete up to `last`; the ids of the person's `payments`.
    """

    entries: list[int]
    worded: list[int]
    last: int
    payments: set[str]


def _find_named(engine: Engine, account: int, person: Person) -> _Named:
    found = _look_up(engine, account, person)
    entries, payments = set(found.texts), set()
    for entry in _naming(engine.journal, account, person, found):
        entries.add(entry.sequence)
        if _pays(person, entry):
            payments.add(entry.id)
    return _Named(sorted(entries), found.free_texts, found.last, payments)


def _look_up(engine: Engine, account: int, person: Person) -> NamingEntries:
    return find_naming(engine.source, account, person.names)


def _naming(
    journal: Journal, account: int, person: Person, found: NamingEntries
) -> Iterator[Entry]:
    """The payments and updates that may name the person, and such events that are not in the index;
    some may come twice. Raises `Damaged`.
    """
    yield from chain.from_iterable(journal.payments_at(account, found.payments))
    kinds = (*_PAYMENT_KINDS, Kind.EVENT)
    for names in person.written():
        replay = partial(journal.replay, account, containing=names)
        for place in found.damaged:
            batches = replay(after=place - 1, up_to=place, kinds=AMENDABLE)
            if (entry := next(chain.from_iterable(batches), None)) is not None:
                raise _damage_of(entry)
        yield from chain.from_iterable(replay(after=found.last, kinds=kinds))


def _pays(person: Person, entry: Entry) -> bool:
    return entry.kind in _PAYMENT_KINDS and person.pays(_decode_payment(entry).payment)


def _decode_payment(entry: Entry) -> StoredFacts:
    """Raises `Damaged`."""
    try:
        return decode_recorded(entry.body)
    except UNREADABLE as error:
        raise _damage_of(entry) from error


def _damage_of(entry: Entry) -> Damaged:
    problem = f"{name_entry(entry)} can't be read, and may name the person"
    return Damaged(f"{problem}; restore a backup, and erase the person there")


async def _rewrite(
    journal: Journal,
    account: int,
    person: Person,
    change: Callable[[Entry], Entry],
    kind: Kind,
    *,
    at: Sequence[int] = (),
    after: int = 0,
) -> int:
    rewritten = 0
    for names in person.written():
        rewritten += await journal.rewrite(account, change, (kind,), names, at=at, after=after)
        at = ()
    return rewritten


def _in_changes(person: Person) -> Callable[[Entry], Entry]:
    """Erase the person from changes; the audit log still says when, by whom and how many entries
    changed."""

    def erase(entry: Entry) -> Entry:
        recorded = decode_change(entry)
        change = recorded.change
        if isinstance(change, Proposed) and isinstance(change.change, EntriesWanted):
            others = _without_person(change.change, person)
            if others == change.change:
                return entry
            left_proposal = replace(change, change=others)
            return entry._replace(body=encode_change(recorded.by, left_proposal, recorded.request))
        if not isinstance(change, EntriesChanged) or not any(map(person.is_named, change.values)):
            return entry
        values = tuple(ERASED_VALUE if person.is_named(value) else value for value in change.values)
        left = replace(change, values=values)
        return entry._replace(body=encode_change(recorded.by, left, recorded.request))

    return erase


def _without_identifier(entry: Entry) -> Entry:
    """The entry, without the identifier if it is a request for an erasure."""
    recorded = decode_change(entry)
    if not isinstance(recorded.change, ErasureAsked):
        return entry
    asked = replace(recorded.change, sealed=None)
    return entry._replace(body=encode_change(recorded.by, asked, recorded.request))


def _without_person(wanted: EntriesWanted, person: Person) -> EntriesWanted:
    others = tuple(entry for entry in wanted.entries if not person.is_named(entry.value))
    return replace(wanted, entries=others)


async def _refuse_proposals(engine: Engine, account: int, by: str, person: Person) -> None:
    """Refuse the open proposals whose entries were the person's, as nothing of them is left."""
    for number, proposal in engine.state.accounts[account].proposals.items():
        wanted = proposal.change
        if not isinstance(wanted, EntriesWanted) or _without_person(wanted, person) == wanted:
            continue
        async with engine.changing:
            if engine.state.accounts[account].proposals[number].change == wanted:
                refused = ProposalRefused(number, "an entry was erased")
                await make_change(engine, account, by, refused)


def _in_events(
    person: Person, found: PersonEntries, contract: Callable[[str, int], Contract]
) -> Callable[[Entry], Entry]:
    def erase(entry: Entry) -> Entry:
        kept = decode_event(entry.body)
        if not any(map(person.is_named, kept.data.values())):
            return entry._replace(outcome=erase_transitions(entry.outcome, person.is_named))
        left = _encode(erase_event(kept, contract(kept.type, kept.version), person))
        new = entry._replace(body=left, outcome=erase_transitions(entry.outcome, unless_in(left)))
        found.events[entry.sequence] = (entry, new)
        return new

    return erase


def _in_labels(person: Person, payments: Collection[str]) -> Callable[[Entry], Entry]:
    """Erase the reasons given with labels; the labels stay."""

    def erase(entry: Entry) -> Entry:
        if entry.id not in payments and not person.may_be_in(entry.body):
            return entry
        return entry._replace(body=encode_label(replace(decode_label(entry.body), reason=None)))

    return erase


def _in_notes(person: Person, payments: Collection[str]) -> Callable[[Entry], Entry]:
    """Erase the texts of notes; that there was a note, and its author, stay."""

    def erase(entry: Entry) -> Entry:
        if entry.id not in payments and not person.may_be_in(entry.body):
            return entry
        return entry._replace(body=encode_note(replace(decode_note(entry.body), text=ERASED_VALUE)))

    return erase


def _in_reports(
    person: Person, payments: Collection[str], found: PersonEntries, later: set[str]
) -> Callable[[Entry], Entry]:
    """Erase the person's `payments`; the ids of others of the person's are added to `later`."""

    def erase(entry: Entry) -> Entry:
        recorded = _decode_payment(entry)
        if not person.pays(recorded.payment):
            return entry._replace(outcome=erase_transitions(entry.outcome, person.is_named))
        if entry.id not in payments:
            later.add(entry.id)
            return entry
        if entry.kind == Kind.PAYMENT:
            found.first[entry.id] = entry
            found.last.setdefault(entry.id, entry)
        else:
            found.last[entry.id] = entry
        left = _encode(erase_payment(recorded, person))
        return entry._replace(body=left, outcome=erase_transitions(entry.outcome, unless_in(left)))

    return erase


async def _rewrite_reports(
    journal: Journal,
    account: int,
    person: Person,
    named: _Named,
    change: Callable[[Entry], Entry],
) -> None:
    in_reports = partial(
        _rewrite, journal, account, person, change, at=named.entries, after=named.last
    )
    # A payment after its updates: an export reads again what was altered at the payments' places.
    while await in_reports(Kind.UPDATE) + await in_reports(Kind.PAYMENT):
        pass


def _unless(
    stays: Callable[[Entry], bool], erase: Callable[[Entry], Entry]
) -> Callable[[Entry], Entry]:
    return lambda entry: entry if stays(entry) else erase(entry)


def _is_identified(person: Person, entry: Entry) -> bool:
    user = _decode_payment(entry).payment.user
    return user is not None and user.id == person.user


async def _note_telling(engine: Engine, account: int, found: PersonEntries) -> None:
    for id_ in found.telling:
        known = await engine.journal.first_and_last(account, id_)
        if known is not None:
            found.first[id_], found.last[id_] = known


def _contracts(engine: Engine, account: int) -> Callable[[str, int], Contract]:
    files = engine.state.accounts[account].files
    return lambda type_, version: contract_of(files["event", type_].versions[version - 1])


async def _uncount(engine: Engine, account: int, found: PersonEntries) -> None:
    """Take the person's payments out of the windows, as they were counted."""
    for id_ in [each for each in found.first if each not in found.uncounted]:
        state = await payment_state(engine, found.first[id_], found.last[id_])
        await uncount(engine, payment_record(account, id_, state))
        found.uncounted.add(id_)


async def _recount(engine: Engine, account: int, found: PersonEntries) -> None:
    """Count the erased payments in the windows, as a restart would."""
    for id_ in [each for each in found.first if each not in found.counted]:
        known = await engine.journal.first_and_last(account, id_)
        if known is not None:
            record = payment_record(account, id_, await payment_state(engine, *known))
            await engine.windows.observe(record, ())
        found.counted.add(id_)


async def _recount_events(engine: Engine, account: int, found: PersonEntries) -> None:
    """Replace the erased events in the windows by what is left of them."""
    read = event_reader(engine.state.accounts[account])
    for sequence in [each for each in found.events if each not in found.recounted]:
        old, new = found.events[sequence]
        await uncount(engine, read(old))
        await engine.windows.observe(read(new), ())
        found.recounted.add(sequence)


async def _erase_from_lists(
    engine: Engine, account: int, by: str, person: Person
) -> dict[str, int]:
    """Remove the person from lists; returns the number of entries by list, which the audit log gets
    too."""
    removed = {}
    async with engine.changing:
        for name, held in engine.active[account].contents.items():
            values = tuple(sorted(_listed_values(held, person.names)))
            if values:
                change = EntriesChanged(name, "remove", len(values), ())
                contents = remove_values(held, values)
                await make_change(engine, account, by, change, Removal(name, values), contents)
                removed[name] = len(values)
    return removed


def _listed_values(contents: Contents, names: Iterable[str]) -> set[str]:
    found = set()
    for name in names:
        try:
            value = canonical_value(contents.spec, name)
        except ValueError:
            continue
        if has_value(contents, value):
            found.add(value)
    return found


class EraseUser(AccountVerb, frozen=True):
    """Erase one person's data for good."""

    user: str

    async def perform(self, engine: Engine, author: str, _progress: Progress) -> Effect:
        erased = await erase_user(engine, self.number(engine), author, self.user)
        return Effect(erased=erased)
