"""Requests that the document suggests, right and wrong, at a real service."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pytest
from hypothesis.configuration import storage_directory

from tollkeeper.tests.examples import NIGHT
from tollkeeper.tests.service.process import HOST, PATIENCE_S, new_key, serving_within

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = DOCS / "openapi.json"
REASONS = re.compile(r"(?:`(\w+)`|a (diagnostic)) at `([^`]+)`")
PHASES = "examples,coverage,fuzzing" if NIGHT else "examples,coverage"
MODE = "all" if NIGHT else "positive"
"""Requests that the document forbids are left to the night; tests/api/http has those that matter."""
EXAMPLES = 8
AT_ONCE = 1_000_000
"""Requests a second: so many that none waits for its turn."""
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Where a service answers, and a key that it takes."""
    folder = tmp_path_factory.mktemp("described") / "data"
    key = new_key(folder, "payments", "rules", "admin")
    paces = dict.fromkeys(("key_work", "account_work", "account_changes"), AT_ONCE)
    with serving_within(folder, **paces) as running:
        yield running.url, key


def test_answers_agree_with_the_document_and_what_it_allows_is_refused_for_listed_reasons_alone(
    service: tuple[str, str], tmp_path: Path
) -> None:
    url, key = service
    command = [
        *(Path(sys.executable).with_name("schemathesis"), "run", DOCUMENT),
        *("--url", url, "--header", f"Authorization: Bearer {key}"),
        *("--phases", PHASES, "--mode", MODE, "--max-examples", str(EXAMPLES)),
        *("--checks", ",".join(CHECKS), "--request-timeout", str(PATIENCE_S)),
        # A stream goes on for as long as it is asked to: tests/api/http/test_search.py has it.
        *("--exclude-path", "/v1/decisions/stream"),
        *("--report", "ndjson", "--report-dir", tmp_path),
        "--generation-deterministic",
        "--no-color",
    ]
    # What Hypothesis knows of Unicode, from an earlier run; and no proxy is looked for at each request.
    known = {"HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path), "NO_PROXY": HOST}
    told = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **known}, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout + told.stderr
    (report,) = tmp_path.glob("*.ndjson")
    found, listed = set(refusals(report)), listed_reasons()
    assert found
    assert not {
        (type_, place)
        for type_, place in found
        if not any(type_ == known and fnmatchcase(place, where) for known, where in listed)
    }


def listed_reasons() -> list[tuple[str, str]]:
    """Type, and pattern of the place, of what the page lists as refused though the document allows it."""
    page = (DOCS / "api.md").read_text()
    table = page[page.index("| refused as | in |") :].partition("\n\n")[0]
    return [
        (type_ or diagnostic, place.replace("[", "[[]").replace("…", "*"))
        for type_, diagnostic, place in REASONS.findall(table)
    ]


def refusals(report: Path) -> Iterator[tuple[str, str]]:
    """Type and place of each error of a 422 to what the document allows, the places of items and of
    what a text says in general."""
    for line in report.read_bytes().splitlines():
        done = msgspec.json.decode(line).get("ScenarioFinished")
        if done is None:
            continue
        recorder = done["recorder"]
        for case, sent in recorder.get("interactions", {}).items():
            meta, answer = recorder["cases"][case]["value"]["meta"], sent.get("response")
            if meta["generation"]["mode"] != "positive" or meta["phase"]["name"] == "fuzzing":
                continue
            if answer is None or answer["status_code"] != 422:
                continue
            body = msgspec.json.decode(base64.b64decode(answer["content"]["$base64"]))
            for error in body["errors"]:
                type_, place = error["type"], error["field"]
                if "-" in type_:
                    yield "diagnostic", re.split(r"[.:]", place)[0]
                else:
                    yield type_, re.sub(r"^line \d+", "line", re.sub(r"\[\d+\]", "[]", place))
