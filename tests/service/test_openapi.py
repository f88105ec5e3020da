"""Requests that the document suggests, right and wrong, at a real service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tollkeeper.api.http.document import document
from tollkeeper.tests.service.process import PATIENCE_S, new_key, serving_within

EXAMPLES = 4
AT_ONCE = 1_000_000
"""Changes a second: so many that none of the requests waits for its turn."""
AGREEMENT = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

described: Any = schemathesis.openapi.from_dict(
    msgspec.json.decode(msgspec.json.encode(document()))
    # A stream goes on for as long as it is asked to: tests/api/http/test_search.py has it.
).exclude(path="/v1/decisions/stream")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Where a service answers, and a key that it takes."""
    folder = tmp_path_factory.mktemp("described") / "data"
    key = new_key(folder, "payments", "rules", "admin")
    with serving_within(folder, account_changes=AT_ONCE) as running:
        yield running.url, key


@described.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_agrees_with_the_document(case: Any, service: tuple[str, str]) -> None:
    url, key = service
    headers = {"Authorization": f"Bearer {key}"}
    case.call_and_validate(base_url=url, headers=headers, checks=AGREEMENT, timeout=PATIENCE_S)
