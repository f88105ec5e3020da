"""Import a file of entries over HTTP: preview its changes, then add all of it or nothing."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Annotated, Any

from msgspec import Meta, Struct

from tollkeeper.api.http.bodies import read_text
from tollkeeper.api.http.errors import invalid
from tollkeeper.api.http.lists import NamedList, PutAnswer, PutCount
from tollkeeper.api.http.operation import TEXT, Answer, Body, Example, operation
from tollkeeper.api.http.request import Request
from tollkeeper.api.http.tags import LISTS
from tollkeeper.engine.intake.violations import Violation, cap_violations
from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.contents import Contents, has_value
from tollkeeper.engine.lists.csv_file import read_csv
from tollkeeper.engine.lists.entries import show_entry
from tollkeeper.engine.lists.imports import MAX_REPORTED, BadEntry
from tollkeeper.engine.lists.spec import Spec
from tollkeeper.engine.publish.change_lists import PutEntries
from tollkeeper.engine.registry.lists import find_list

_Csv = Annotated[
    str, Meta(extra_json_schema={"pattern": r'^([^\r\n]*,)?"?value"?(,[^\r\n]*)?(\r?\n|$)'})
]
_CSV = "value,expires_at,note\nd-1,2099-12-31T23:59:59Z,card testing\n"


class MalformedLine(Struct, frozen=True):
    """A line that is not an entry; `place` is its position in the file, as `line 3`."""

    place: str
    message: str


class ImportPreview(Struct, frozen=True):
    """The values that are new and those that the list has already, in file order, and the first of
    `malformed_count` lines that are not entries; if there are any, the file can't be imported.
    """

    new: list[str]
    present: list[str]
    malformed: list[MalformedLine]
    malformed_count: int


class PreviewAnswer(Struct, frozen=True):
    preview: ImportPreview


@operation(
    "POST",
    "/v1/lists/{name:str}/previews",
    "preview_import",
    tag=LISTS,
    summary="Preview the import of a file of entries",
    doc=(
        "CSV with a header: `value`, a table's columns, and optionally `expires_at` and "
        "`note`. Changes nothing."
    ),
    scope="lists:write",
    sent=Body(_Csv, {"csv": Example("a file", _CSV)}, media_type=TEXT),
    answers={200: Answer("New values, existing values, and lines that are not entries.")},
    refusals=(404,),
)
async def preview_import(request: Request, name: NamedList) -> PreviewAnswer:
    spec = find_list(request.account, name).spec
    text = await read_text(request)
    held = request.engine.active[request.key.account].contents[name]
    return PreviewAnswer(await asyncio.to_thread(_preview, text, spec, held))


@operation(
    "POST",
    "/v1/lists/{name:str}/imports",
    "import_entries",
    tag=LISTS,
    summary="Add or renew the entries of a file",
    doc=(
        "The same CSV, all entries or none; other entries of the list stay. `toll lists "
        "import` replaces a whole list."
    ),
    scope="lists:write",
    demand="change",
    sent=Body(_Csv, {"csv": Example("a file", _CSV)}, media_type=TEXT),
    answers={200: Answer("The entries are added.")},
    refusals=(404, 422, 503),
)
async def import_entries(request: Request, name: NamedList) -> PutAnswer:
    spec = find_list(request.account, name).spec
    given = await asyncio.to_thread(_shown_entries, await read_text(request), spec)
    put = await request.perform(PutEntries(request.account.name, name, given))
    return PutAnswer(PutCount(name, put.count or 0))


def _preview(text: bytes, spec: Spec, held: Contents) -> ImportPreview:
    entries, bad = _read(text, spec)
    existing = {entry.value: has_value(held, entry.value) for entry in entries}
    lines = [MalformedLine(each.place, each.message) for each in bad[:MAX_REPORTED]]
    new = [value for value, known in existing.items() if not known]
    present = [value for value, known in existing.items() if known]
    return ImportPreview(new, present, lines, len(bad))


def _shown_entries(text: bytes, spec: Spec) -> list[dict[str, Any]]:
    """Read a file's entries. Raises `Problem` 422 if a line is not one."""
    entries, bad = _read(text, spec)
    if bad:
        wrong = [Violation(each.place, "invalid_format", each.message) for each in bad]
        raise invalid(cap_violations(wrong))
    return [show_entry(spec, entry) for entry in entries]


def _read(text: bytes, spec: Spec) -> tuple[list[ListEntry], list[BadEntry]]:
    entries, bad = [], []
    for each in read_csv(BytesIO(text), spec):
        if isinstance(each, BadEntry):
            bad.append(each)
        else:
            entries.append(each)
    return entries, bad


ROUTES = (preview_import, import_entries)
