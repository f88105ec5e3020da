"""The regression: near the author without evidence, near the evidence with it, never across zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from tollkeeper.engine.offline.fit.estimate import LEAST, calibrate, estimate

NOTHING = np.zeros((0, 2))


def drawn(weights, baseline, count=20_000):
    """Payments whose labels follow the weights, with the chance of a fixed seed."""
    chance = np.random.default_rng(5)
    measures = chance.exponential(size=(count, len(weights)))
    chances = expit(np.log(baseline / (1 - baseline)) + measures @ np.array(weights))
    return measures, (chance.random(count) < chances).astype(float)


def test_without_evidence_the_author_is_right():
    found = estimate(NOTHING, np.zeros(0), np.zeros(0), 0.02, np.array([1.5, -2.0]))
    assert found.baseline == pytest.approx(0.02)
    assert found.weights == pytest.approx([1.5, -2.0])


def test_much_evidence_finds_the_weights_that_made_it():
    measures, labels = drawn([1.0, -0.5], 0.2)
    found = estimate(measures, np.zeros(len(labels)), labels, 0.02, np.array([0.6, -1.0]))
    assert found.baseline == pytest.approx(0.2, rel=0.1)
    assert found.weights == pytest.approx([1.0, -0.5], rel=0.1)


def test_what_signals_without_a_weight_add_is_counted():
    measures, labels = drawn([1.0, 2.0], 0.2)
    fixed = measures[:, 1] * 2.0
    found = estimate(measures[:, :1], fixed, labels, 0.2, np.array([1.0]))
    assert found.weights == pytest.approx([1.0], rel=0.1)


@settings(max_examples=25, deadline=None)
@given(
    arrays(float, (20, 3), elements=st.floats(0, 50)),
    arrays(float, 20, elements=st.sampled_from([0.0, 1.0])),
    st.lists(st.floats(0.1, 8) | st.floats(-8, -0.1), min_size=3, max_size=3),
)
def test_a_weight_always_keeps_the_sign_that_its_author_gave(measures, labels, authored):
    found = estimate(measures, np.zeros(20), labels, 0.02, np.array(authored))
    assert 0 < found.baseline < 1
    kept = np.array(found.weights) / np.array(authored)
    assert (kept >= LEAST - 1e-9).all()


def test_calibration_finds_the_factor_that_made_the_labels():
    measures, labels = drawn([0.4], 0.1)
    shift, factor = calibrate(measures[:, 0], labels, 0.0)
    assert expit(shift) == pytest.approx(0.1, rel=0.1)
    assert factor == pytest.approx(0.4, rel=0.1)
