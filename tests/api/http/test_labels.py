"""What became known of payments, over HTTP."""

from __future__ import annotations

import pytest

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.search.reading import MINUTE
from tollkeeper.tests.api.http.service import NOW, Service, errors, payment

pytestmark = pytest.mark.anyio


async def furnish(service: Service) -> None:
    for number in range(3):
        answer = await service.client.post("/v1/payments", json=payment(id=f"p {number}/1"))
        assert answer.status_code == 201


@pytest.fixture
async def shop(service: Service) -> Service:
    await furnish(service)
    return service


@pytest.fixture(scope="module")
async def shared_shop(shared_service: Service) -> Service:
    await furnish(shared_service)
    return shared_service


async def label(service: Service, number: int, source: str, said: str, **more: str) -> None:
    path = f"/v1/payments/p%20{number}%2F1/labels/{source}"
    answer = await service.client.put(path, json={"label": said, **more})
    assert answer.status_code == 200, answer.text


async def labelled(service: Service, **query: str) -> list[str]:
    answer = await service.client.get("/v1/payments", params=query)
    return [each["id"] for each in answer.json()["payments"]]


async def test_the_weightiest_source_that_is_sure_counts(shop: Service) -> None:
    path = "/v1/payments/p%200%2F1/labels"
    said = []
    for source, verdict in (
        ("customer", "unsure"),
        ("import", "legitimate"),
        ("chargeback", "fraud"),
        ("review", "legitimate"),
    ):
        await label(shop, 0, source, verdict)
        said.append((await shop.client.get(path)).json()["label"])
    assert said == ["unsure", "legitimate", "fraud", "fraud"]
    assert await labelled(shop, label="fraud") == ["p 0/1"]
    assert (await shop.client.delete(f"{path}/chargeback")).status_code == 200
    assert (await shop.client.get(path)).json()["label"] == "legitimate"
    assert await labelled(shop, label="legitimate") == ["p 0/1"]
    assert await labelled(shop, label="none") == ["p 2/1", "p 1/1"]
    [found] = (await shop.client.get("/v1/payments?label=legitimate")).json()["payments"]
    assert found["label"] == "legitimate"


async def test_a_label_says_by_whom_why_and_when(shop: Service) -> None:
    at = "2026-09-01T10:00:00+02:00"
    await label(shop, 1, "chargeback", "fraud", reason="stolen card", at=at)
    answer = (await shop.client.get("/v1/payments/p%201%2F1/labels")).json()
    [key] = shop.engine.state.accounts[1].keys
    assert answer["labels"] == [
        {
            "payment": "p 1/1",
            "source": "chargeback",
            "label": "fraud",
            "reason": "stolen card",
            "at": "2026-09-01T08:00:00Z",
            "by": key,
        }
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error"),
    [
        ("PUT", "nobody/labels/review", {"label": "fraud"}, 404, ("id", "not_found")),
        ("DELETE", "nobody/labels/review", None, 404, ("id", "not_found")),
        ("GET", "nobody/labels", None, 404, ("id", "not_found")),
        ("DELETE", "p%200%2F1/labels/review", None, 404, ("source", "not_found")),
        ("PUT", "p%200%2F1/labels/rumour", {"label": "fraud"}, 404, ("source", "not_found")),
        ("PUT", "p%200%2F1/labels/review", {"label": "bad"}, 422, ("label", "invalid_value")),
        ("PUT", "p%200%2F1/labels/review", {}, 422, ("label", "missing")),
        (
            "PUT",
            "p%200%2F1/labels/review",
            {"label": "fraud", "at": "2031-01-01T00:00:00Z"},
            422,
            ("at", "timestamp_future"),
        ),
    ],
)
async def test_what_can_not_be_labelled_is_named(
    shared_shop: Service,
    method: str,
    path: str,
    body: dict[str, str] | None,
    status: int,
    error: tuple[str, str],
) -> None:
    answer = await shared_shop.client.request(method, f"/v1/payments/{path}", json=body)
    assert answer.status_code == status
    assert errors(answer) == [error]


async def test_each_label_of_a_batch_is_kept_or_refused_by_itself(shop: Service) -> None:
    batch = [
        {"payment": "p 0/1", "source": "import", "label": "fraud"},
        {"payment": "nobody", "source": "import", "label": "fraud"},
        {"payment": "p 1/1", "source": "import", "label": "legitimate", "reason": "paid back"},
        {"payment": "p 0/1", "source": "import", "label": None},
    ]
    answer = await shop.client.post("/v1/labels", json={"labels": batch})
    assert [each["status"] for each in answer.json()["labels"]] == [200, 404, 200, 200]
    assert await labelled(shop, label="fraud") == []
    assert await labelled(shop, label="legitimate") == ["p 1/1"]
    batch[2]["at"] = "soon"
    refused = await shop.client.post("/v1/labels", json={"labels": batch})
    assert errors(refused) == [("labels[2].at", "invalid_format")]


async def test_labels_are_listed_newest_first(shop: Service) -> None:
    await label(shop, 0, "review", "fraud")
    await label(shop, 1, "review", "legitimate")
    await label(shop, 0, "chargeback", "fraud")
    await label(shop, 2, "import", "unsure")
    await label(shop, 0, "review", "unsure")

    async def listed(**query: str) -> list[tuple[str, str, str]]:
        found, cursor = [], None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            page = (await shop.client.get("/v1/labels", params=query | more)).json()
            found += [
                (each["payment"][2], each["source"], each["label"]) for each in page["labels"]
            ]
            cursor = page["cursor"]
            if cursor is None:
                return found

    everything = [
        ("0", "review", "unsure"),
        ("2", "import", "unsure"),
        ("0", "chargeback", "fraud"),
        ("1", "review", "legitimate"),
    ]
    assert await listed() == await listed(limit="1") == everything
    assert await listed(source="review") == [everything[0], everything[3]]
    assert await listed(label="unsure") == everything[:2]
    assert await listed(since="2027-01-01T00:00:00Z") == []


async def test_a_label_is_listed_since_a_minute_that_no_payment_came_after(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shop.engine, "clock", lambda: NOW + 5 * MINUTE)
    await label(shop, 0, "review", "fraud")
    for minutes, count in ((-9, 1), (2, 1), (5, 1), (6, 0)):
        since = show_instant((NOW // MINUTE + minutes) * MINUTE)
        page = (await shop.client.get("/v1/labels", params={"since": since})).json()
        assert len(page["labels"]) == count


async def test_saying_the_same_again_adds_nothing(shop: Service) -> None:
    await label(shop, 0, "review", "fraud")
    last = shop.engine.journal.last_sequence()
    await label(shop, 0, "review", "fraud")
    assert shop.engine.journal.last_sequence() == last
    await label(shop, 0, "review", "fraud", reason="seen twice")
    assert shop.engine.journal.last_sequence() == last + 1


async def test_an_erased_person_leaves_the_label_without_its_words(shop: Service) -> None:
    await label(shop, 0, "review", "fraud", reason="Ana said so on the phone")
    answer = await shop.client.post("/v1/erasures", json={"user": "u-1"})
    assert answer.status_code == 200
    [left] = (await shop.client.get("/v1/payments/p%200%2F1/labels")).json()["labels"]
    assert (left["label"], left["reason"]) == ("fraud", None)
    assert await labelled(shop, label="fraud") == ["p 0/1"]
    for path in shop.folder.glob("*.db*"):
        assert b"on the phone" not in path.read_bytes(), path


async def test_an_empty_batch_of_labels_is_refused(shop: Service) -> None:
    answer = await shop.client.post("/v1/labels", json={"labels": []})
    assert answer.status_code == 422
    assert errors(answer) == [("labels", "invalid_value")]


async def test_the_labels_of_a_payment_change_so_often_and_no_more(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollkeeper.engine.labels.set_label.MAX_LABELS", 3)
    path = "/v1/payments/p%200%2F1/labels"
    for source, verdict in (("review", "fraud"), ("chargeback", "fraud"), ("review", "unsure")):
        await label(shop, 0, source, verdict)
    refused = await shop.client.put(f"{path}/import", json={"label": "unsure"})
    batch = [{"payment": "p 0/1", "source": "import", "label": "unsure"}]
    batch += [{"payment": "p 1/1", "source": "import", "label": "unsure"}]
    several = await shop.client.post("/v1/labels", json={"labels": batch})
    # The chargeback's label is there, and can't be taken back any more.
    for answer in (refused, await shop.client.delete(f"{path}/chargeback")):
        assert answer.status_code == 422
        assert errors(answer) == [("label", "too_long")]
    assert [each["status"] for each in several.json()["labels"]] == [422, 200]
    await label(shop, 0, "review", "unsure")
    said = (await shop.client.get(path)).json()
    assert {each["source"]: each["label"] for each in said["labels"]} == {
        "chargeback": "fraud",
        "review": "unsure",
    }
