"""datalogic-py: JSON-Logic in Rust, one compiled rule in a session, over handles of parsed data."""

from __future__ import annotations

from typing import Any

from datalogic_py import DataHandle, Engine

from tollkeeper.bench.peers import Peer
from tollkeeper.bench.peers.documents import PATHS


def peer() -> Peer:
    engine = Engine()
    flat = engine.compile(_rule({name: name for name in PATHS}))
    nested = engine.compile(_rule(PATHS))
    session = engine.session()
    return Peer(
        prepare=DataHandle,
        decide=lambda handle: session.evaluate_int(flat, handle),
        decide_inputs=lambda inputs: session.evaluate(flat, inputs),
        decide_json=lambda body: int(session.evaluate_str(nested, body.decode())),
    )


def _rule(paths: dict[str, str]) -> Any:
    conditions = _conditions({name: {"var": path} for name, path in paths.items()})
    steps = [step for index, each in enumerate(conditions) for step in (each, index)]
    return {"if": [*steps, -1]}


def _conditions(v: dict[str, Any]) -> list[Any]:
    """JSON-Logic compares null as 0, so there are guards where that would be true."""
    priced = _there(v["amount"])
    return [
        {"and": [_missing(v["device"]), {"===": [v["category"], "4900"]}]},
        {"and": [{">=": [v["cards"], 9]}, priced, {"<": [v["amount"], 10]}]},
        {"and": [{">": [v["declines"], 5]}, {">=": [v["score"], 0.9]}]},
        {"and": [{"===": [v["type"], "verify"]}, {"===": [v["presence"], "card_present"]}]},
        {"and": [_one_of(v["network"], "jcb", "discover", "other"), {">": [v["amount"], 4900]}]},
        {
            "and": [
                _there(v["country"]),
                {"!": [_one_of(v["country"], "BR", "US", "FR")]},
                {">": [v["amount"], 4500.50]},
            ]
        },
        {
            "and": [
                _there(v["email"]),
                {"===": [{"substr": [v["email"], -5]}, ".test"]},
                {">": [v["amount"], 4000]},
            ]
        },
        {
            "and": [
                {"===": [v["status"], "declined"]},
                _one_of(v["currency"], "USD", "EUR"),
                {">": [v["score"], 0.95]},
            ]
        },
        {"and": [{">": [{"-": [{"*": [v["amount"], 3]}, 1.50]}, 14000]}, _there(v["order"])]},
        {
            "and": [
                {
                    "or": [
                        {"and": [_there(v["provider"]), {"!==": [v["provider"], "basic"]}]},
                        _missing(v["user"]),
                    ]
                },
                priced,
                {"<": [v["amount"], 1]},
            ]
        },
        {
            "and": [
                _there(v["bin"]),
                {"===": [{"substr": [v["bin"], 0, 4]}, "4000"]},
                {"<=": [1, v["amount"], 5]},
            ]
        },
        {
            "and": [
                {">=": [v["cards"], 3]},
                {"or": [{">": [v["declines"], 3]}, {">=": [v["score"], 0.95]}]},
            ]
        },
    ]


def _there(value: Any) -> Any:
    return {"!==": [value, None]}


def _missing(value: Any) -> Any:
    return {"===": [value, None]}


def _one_of(value: Any, *choices: str) -> Any:
    return {"in": [value, list(choices)]}
