"""Four eyes on lists: what stands in them waits for another person, and is seen where it did not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tollkeeper.engine.privacy.erasure import EraseUser
from tollkeeper.tests.api.http.service import Service, errors
from tollkeeper.tests.api.http.test_proposals import Team, signed_in

pytestmark = pytest.mark.anyio

ENTRIES = [{"value": "d-1", "note": "card testing"}, {"value": "d-2"}]
PATH = "/v1/lists/blocked"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def team(service: Service) -> AsyncIterator[Team]:
    await service.client.put(PATH, json={"type": "string"})
    first = {"entries": [{"value": "old"}]}
    assert (await service.client.put(f"{PATH}/entries", json=first)).status_code == 200
    settings = {"account": {"approvals": {"lists": True}}}
    assert (await service.client.put("/v1/account", json=settings)).status_code == 200
    async with (
        signed_in(service, "ana", "lead") as ana,
        signed_in(service, "rui", "lead") as rui,
        signed_in(service, "eva", "analyst") as eva,
    ):
        yield Team(service, ana, rui, eva)


async def want(team: Team, entries: Any = ENTRIES, action: str = "put") -> httpx.Response:
    return await team.propose(
        team.eva, entries={"name": "blocked", "action": action, "entries": entries}
    )


async def values(team: Team) -> dict[str, Any]:
    found = (await team.service.client.get(f"{PATH}/entries")).json()["entries"]
    return {each["value"]: each.get("expires_at") for each in found}


async def decide(team: Team, act: str, number: int = 1, **body: Any) -> httpx.Response:
    who = team.ana if act == "alone" else team.rui
    return await who.post(f"/v1/proposals/{number}/{act}", json=body or None)


async def break_glass(team: Team, number: int = 1) -> httpx.Response:
    return await decide(team, "alone", number, alone={"until": "6h", "reason": "nobody is awake"})


async def test_nobody_changes_a_list_alone(team: Team) -> None:
    for who in (team.ana, team.eva, team.service.client):
        for answer in (
            await who.put(f"{PATH}/entries", json={"entries": ENTRIES}),
            await who.request("DELETE", f"{PATH}/entries", json={"entries": [{"value": "old"}]}),
            await who.post(f"{PATH}/imports", content="value\nd-1\n"),
        ):
            assert errors(answer) == [("approval", "forbidden")], answer.text
            assert "propose it" in answer.text
    lifted = {"account": {"approvals": {"lists": False}}}
    assert (await team.ana.put("/v1/account", json=lifted)).status_code == 403
    assert await values(team) == {"old": None}


async def test_entries_stand_once_another_person_approves_them(team: Team) -> None:
    proposed = await want(team)
    assert proposed.status_code == 201, proposed.text
    waiting = proposed.json()["proposal"]
    assert (waiting["action"], waiting["name"], waiting["kind"]) == ("entries", "blocked", None)
    assert waiting["entries"]["count"] == 2
    assert waiting["entries"]["entries"][0] == {"value": "d-1", "note": "card testing", "by": "eva"}
    assert await values(team) == {"old": None}
    assert (await team.eva.post("/v1/proposals/1/approval")).status_code == 403
    approved = await decide(team, "approval")
    assert approved.status_code == 200, approved.text
    done = approved.json()["proposal"]
    assert (done["state"], done["entries"]["entries"]) == ("approved", [])
    assert await values(team) == {"old": None, "d-1": None, "d-2": None}
    changed, asked = (await team.audit())[:2]
    assert (changed["action"], changed["by"]) == ("entries_changed", "rui")
    assert changed["detail"] == {
        "action": "put",
        "count": 2,
        "values": ["d-1", "d-2"],
        "proposal": 1,
    }
    assert (asked["action"], asked["subject"]) == ("proposed", "proposal 1: list blocked")
    assert asked["detail"]["change"] == {"action": "put", "count": 2}
    assert errors(await decide(team, "approval")) == [("proposal", "conflict")]


async def test_a_removal_is_approved_as_well_while_the_entry_stands(team: Team) -> None:
    assert (await want(team, [{"value": "none"}], "remove")).status_code == 404
    for _ in range(2):
        assert (await want(team, [{"value": "old"}], "remove")).status_code == 201
    assert errors(await break_glass(team)) == [("proposal", "conflict")]
    assert (await decide(team, "approval")).status_code == 200
    assert await values(team) == {}
    assert (await decide(team, "approval", 2)).status_code == 404


async def test_who_breaks_the_glass_puts_entries_for_hours_and_is_seen(team: Team) -> None:
    await want(team)
    done = (await break_glass(team)).json()["proposal"]
    assert (done["state"], done["open"], done["reason"]) == ("alone", True, "nobody is awake")
    held = await values(team)
    assert (held["old"], held["d-1"]) == (None, held["d-2"])
    assert held["d-1"] is not None
    (alert,) = (await team.rui.get("/v1/alerts")).json()["alerts"]
    assert (alert["type"], alert["key"]) == ("rule.published", ["list", "blocked", 1])
    assert alert["title"] == "entries of blocked were put alone: 2"
    assert (alert["values"]["by"], alert["values"]["reason"]) == ("ana", "nobody is awake")
    (seen, *_) = await team.audit()
    assert (seen["detail"]["alone"], seen["detail"]["reason"]) == (True, "nobody is awake")
    assert (await decide(team, "approval")).status_code == 200
    assert await values(team) == {"old": None, "d-1": None, "d-2": None}


async def test_what_was_put_alone_goes_when_it_is_refused(team: Team) -> None:
    await want(team)
    await break_glass(team)
    refused = await decide(team, "refusal", refusal={"reason": "it was a sale"})
    assert refused.json()["proposal"]["state"] == "refused", refused.text
    assert await values(team) == {"old": None}


async def test_a_refusal_leaves_what_another_proposal_put_meanwhile(team: Team) -> None:
    await want(team)
    await want(team, [{"value": "d-1"}])
    await break_glass(team)
    assert (await decide(team, "approval", 2)).status_code == 200
    await decide(team, "refusal", refusal={"reason": "it was a sale"})
    assert await values(team) == {"old": None, "d-1": None}


async def test_what_stands_already_is_not_put_alone_as_it_would_end(team: Team) -> None:
    await want(team, [{"value": "old"}])
    assert errors(await break_glass(team)) == [("proposal", "conflict")]
    assert await values(team) == {"old": None}


async def test_entries_that_are_over_are_not_approved(team: Team) -> None:
    await want(team, [{"value": "d-1", "expires_at": "2000-01-01T00:00:00Z"}])
    assert errors(await decide(team, "approval")) == [("proposal", "conflict")]


@pytest.mark.parametrize(
    "entries", [[], [{"value": ""}], [{"value": f"d-{each}"} for each in range(1001)]]
)
async def test_what_no_list_would_take_is_not_proposed(team: Team, entries: Any) -> None:
    assert (await want(team, entries)).status_code == 422


async def test_who_may_not_read_lists_sees_no_entry_of_a_proposal(team: Team) -> None:
    await want(team)
    wanted = {"key": {"scopes": ["rules:read"]}}
    made = await team.service.client.post("/v1/keys", json=wanted)
    async with team.service.client_with(made.json()["key"]["secret"]) as narrow:
        (shown,) = (await narrow.get("/v1/proposals")).json()["proposals"]
    assert (shown["entries"]["count"], shown["entries"]["entries"]) == (2, [])


async def test_an_erased_person_is_in_no_proposal(team: Team) -> None:
    await want(team, [{"value": "u-secret"}, {"value": "d-2"}])
    await want(team, [{"value": "d-3"}])
    engine = team.service.engine
    await EraseUser("shop", "u-secret").perform(engine, "test", lambda _share: None)
    states = [each["state"] for each in (await team.rui.get("/v1/proposals")).json()["proposals"]]
    assert sorted(states) == ["refused", "waiting"]
    kept = [
        entry.body
        for batch in engine.journal.replay(1, kinds=(4,))
        for entry in batch
        if b"u-secret" in entry.body
    ]
    assert kept == []
    assert "u-secret" not in str(engine.state.accounts)
