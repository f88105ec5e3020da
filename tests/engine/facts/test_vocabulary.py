"""What the vocabulary says of a field is what reading a payment does with it."""

from __future__ import annotations

import pytest
from msgspec import json

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.intake.read import read_creation


@pytest.mark.parametrize("path", ["user.id", "user.email", "order.id"])
def test_a_text_that_counts_as_missing_where_it_is_empty_is_never_an_empty_one(path: str) -> None:
    record, name = path.split(".")
    sent = {
        "type": "purchase",
        "currency": "BRL",
        "method": {"type": "pix"},
        "merchant": {"id": "store"},
        record: {name: ""},
    }
    read = read_creation(json.encode({"payment": sent}), 0, DEFAULT_LIMITS)
    assert isinstance(read, Payment)
    assert getattr(getattr(read, record), name) is None
    refuses = full_vocabulary().payment[path].refuses
    assert refuses is not None
    assert refuses("") == "an empty one counts as missing"
    assert refuses("x") is None
