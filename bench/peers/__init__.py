"""Other rule engines, each deciding the same twelve conditions in its fastest documented way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

from tollkeeper.bench.peers.documents import Inputs

DISTRIBUTIONS = {
    "zen": "zen-engine",
    "cel": "common-expression-language",
    "datalogic": "datalogic-py",
    "rule_engine": "rule-engine",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """`decide` returns the index of the condition met, -1 if none; its argument is made by
    `prepare`, in the engine's fastest form.
    """

    prepare: Callable[[Inputs], Any]
    decide: Callable[[Any], int]
    decide_inputs: Callable[[Inputs], int]
    decide_json: Callable[[bytes], int]


def load(module: str) -> tuple[str, Peer | None]:
    """Return the engine's name with its version, and its peer; None if it isn't installed."""
    distribution = DISTRIBUTIONS[module]
    try:
        peer: Peer = import_module(f"{__name__}.{module}").peer()
    except ModuleNotFoundError:
        return distribution, None
    return f"{distribution} {version(distribution)}", peer
