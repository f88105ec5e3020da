"""The requests of docs/search.md work, in their order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tollkeeper.tests.api.http.service import open_service, payment

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
REQUEST = re.compile(r"^(GET|PUT|POST|DELETE) (/\S[^{\n]*?)(?: (\{.*\}))?$", re.MULTILINE)
RULE = "rule checkout\n  condition large when amount > 100.00 then deny\n"


async def test_the_requests_of_the_page_work(tmp_path: Path) -> None:
    blocks = re.findall(r"^```http\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    requests = [request for block in blocks for request in REQUEST.findall(block)]
    assert len(requests) == sum(block.count("\n") for block in blocks) > 12
    async with open_service(tmp_path) as service:
        client = service.client
        await client.post("/v1/rules/checkout/versions?publish=true", content=RULE)
        analyze = {"bot_behaviour": True, "rule": {"name": "checkout"}}
        body = payment(id="order-1001-1", analyze=analyze)
        assert (await client.post("/v1/payments", json=body)).status_code == 201
        for method, path, sent in requests:
            path, _, query = path.partition("?")
            pairs = [tuple(pair.split("=", 1)) for pair in query.split("&") if pair]
            answer = await client.request(
                method, path, params=pairs, json=json.loads(sent) if sent else None
            )
            assert answer.status_code == 200, (method, path, answer.text)
