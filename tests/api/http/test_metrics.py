"""What the service counts of itself: every figure, and nobody's name."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tollkeeper.api.http.metrics import Figures
from tollkeeper.tests.api.http.service import Service, open_service, payment

pytestmark = pytest.mark.anyio

TYPE = """event sign_in
  field user_id: string required
  metric failures = count(events by user_id over 1h)
  monitor many "Many sign-ins" when failures >= 2
"""
EVENT = {"event": {"type": "sign_in", "data": {"user_id": "u-1"}}}
RULE = """rule busy
  condition many when count(payments by user.id over 1h) > 100 then deny
"""
ATTEMPT = {"id": "t-1", "status": "declined", "connector": {"id": "acq-1", "response_code": "51"}}


async def figures(service: Service) -> dict[tuple[str, ...], float]:
    """Each sample's value by its name and its labels' values."""
    answer = await service.client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_the_format_is_named_once(service: Service) -> None:
    answer = await service.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


async def test_payments_updates_and_events_are_counted(service: Service) -> None:
    client = service.client
    await client.post("/v1/payments", json=payment(id="p-1", analyze={}))
    await client.put("/v1/account", json={"account": {"thresholds": {"challenge": 0, "deny": 0}}})
    for _ in range(2):
        headers = {"idempotency-key": "once"}
        await client.post("/v1/payments", json=payment(), headers=headers)
    await client.post("/v1/payments", json={})
    update = {"payment": {"status": "declined", "transactions": [ATTEMPT]}}
    await client.patch("/v1/payments/p-1", json=update)
    await client.post("/v1/event-types/sign_in/versions?publish=true", content=TYPE)
    await client.post("/v1/events", json=EVENT)
    await client.post("/v1/events", json={"events": [EVENT["event"], {}, EVENT["event"]]})
    found = await figures(service)
    assert found["toll_payments_total", "none"] == 1
    assert found["toll_payments_total", "deny"] == 1
    assert found["toll_updates_total",] == 1
    assert found["toll_events_total",] == 3
    of = "toll_request_duration_seconds_count"
    assert found[of, "/v1/payments", "2xx"] == 3
    assert found[of, "/v1/payments", "4xx"] == 1
    assert found[of, "/v1/payments/{id}", "2xx"] == 1


async def test_scores_are_counted_by_account_in_parts_that_begin_low_and_end_high() -> None:
    counted = Figures()
    for score in (0, 1, 2, 84, 85, 94, 100):
        counted.count_score(1, score)
    counted.count_score(7, 4)
    assert counted.scores == {
        1: [2, 1, 0, 0, 0, 0, 0, 0, 1, 2, 1],
        7: [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    }


async def test_only_a_payment_that_is_analysed_has_a_score(service: Service) -> None:
    await service.client.post("/v1/payments", json=payment(id="p-1", analyze={}))
    await service.client.post("/v1/payments", json=payment(id="p-2"))
    found = await figures(service)
    parts = {key[2]: value for key, value in found.items() if key[0] == "toll_scores_total"}
    assert len(parts) == 11
    assert next(iter(parts)) == "0.00"
    assert sum(parts.values()) == 1


async def test_a_request_falls_into_the_buckets_of_its_duration(service: Service) -> None:
    for path in ("/v1/nowhere/u-1", "/v1/nowhere/u-2"):
        await service.client.get(path)
    found = await figures(service)
    assert found["toll_request_duration_seconds_bucket", "+Inf", "none", "4xx"] == 2
    assert found["toll_request_duration_seconds_count", "none", "4xx"] == 2
    assert found["toll_request_duration_seconds_sum", "none", "4xx"] > 0
    buckets = [value for (name, *_), value in found.items() if name.endswith("_bucket")]
    assert len(buckets) == 15


async def test_what_waits_is_told(service: Service) -> None:
    engine = service.engine
    engine.shadows.unfinished = 7
    engine.shadows.lost = 2
    found = await figures(service)
    assert found["toll_shadows_waiting",] == 7
    assert found["toll_shadows_skipped_total",] == 2
    engine.shadows.unfinished = 0
    assert found["toll_ready",] == 1
    assert found["toll_journal_waiting",] == 0
    assert found["toll_journal_errors_total",] == 0
    secrets = {"url": "https://shop.example/", "secrets": ["x" * 20]}
    await service.client.put("/v1/webhooks", json={"webhook": secrets})
    await service.client.post("/v1/event-types/sign_in/versions?publish=true", content=TYPE)
    for _ in range(2):
        await service.client.post("/v1/events", json=EVENT)
    await service.client.get("/v1/alerts")
    assert (await figures(service))["toll_deliveries_pending",] in (0, 1)


async def test_a_window_that_was_given_up_shows_in_the_figures_and_in_the_account(
    tmp_path: Path,
) -> None:
    async with open_service(tmp_path / "data", windows_cap=40) as service:
        await service.client.post("/v1/rules/busy/versions?publish=true", content=RULE)
        before = (await service.client.get("/v1/account")).json()["windows"]
        assert before == {"entries": 0, "cap": 40, "over_cap": False}
        for number in range(50):
            sent = payment(user={"id": f"u-{number}"})
            assert (await service.client.post("/v1/payments", json=sent)).status_code == 201
        after = (await service.client.get("/v1/account")).json()["windows"]
        assert after["over_cap"] is True
        assert after["entries"] <= 40
        found = await figures(service)
        assert found["toll_windows_entries", "1"] == after["entries"]
        assert found["toll_windows_cap", "1"] == 40
        assert found["toll_windows_over_cap", "1"] == 1


async def test_no_name_and_no_id_is_among_the_figures(service: Service) -> None:
    await service.account("rival")
    await service.client.post("/v1/payments", json=payment(id="p-secret"))
    await service.client.get("/v1/payments/p-secret")
    await service.client.get("/v1/somewhere/ana@shop.example")
    told = (await service.client.get("/metrics")).text
    for name in ("shop", "rival", "p-secret", "ana@", "somewhere"):
        assert name not in told
