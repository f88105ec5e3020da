from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tollkeeper.engine.lists import layers
from tollkeeper.engine.lists.layers import HeldEntry, Layers
from tollkeeper.tests.examples import examples

KEYS = range(40)


@pytest.fixture(autouse=True, scope="module")
def _small_layers():
    """Layers so small that a few changes reach all of them."""
    patch = pytest.MonkeyPatch()
    patch.setattr(layers, "TOP_SIZE", 3)
    patch.setattr(layers, "MIDDLE_SIZE", 8)
    yield
    patch.undo()


class LayersLikeADict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model: dict[int, HeldEntry] = {}
        self.layers: Layers[int] = Layers(({},))
        self.snapshots: list[tuple[dict[int, HeldEntry], Layers[int]]] = []

    @rule(changes=st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(), max_size=6))
    def change(self, changes):
        held = {key: None if at is None else HeldEntry(at, ()) for key, at in changes.items()}
        self.snapshots.append((dict(self.model), self.layers))
        self.layers = self.layers.with_changes(held)
        self.model = {
            key: value for key, value in {**self.model, **held}.items() if value is not None
        }

    @invariant()
    def holds_what_a_dict_would(self):
        assert {key: self.layers.get(key) for key in KEYS if self.layers.get(key)} == self.model

    @invariant()
    def has_three_layers_at_most(self):
        assert len(self.layers.layers) <= 3

    def teardown(self):
        for model, snapshot in self.snapshots:
            assert {key: snapshot.get(key) for key in KEYS if snapshot.get(key)} == model


LayersLikeADict.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None
)
TestLayersLikeADict = LayersLikeADict.TestCase


def test_adding_one_entry_to_many_copies_only_the_top():
    base = {number: HeldEntry(None, ()) for number in range(10_000)}
    changed = Layers((base,)).with_changes({-1: HeldEntry(None, ())})
    assert changed.layers[-1] is base
    assert len(changed.layers[0]) == 1
