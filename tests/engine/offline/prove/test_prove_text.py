"""A text is proved within a time; what was not asked then is named."""

from __future__ import annotations

from tollkeeper.engine.offline.prove.prove_text import prove_text
from tollkeeper.engine.offline.prove.questions import DEFAULT_THRESHOLDS
from tollkeeper.engine.progress import unwatched
from tollkeeper.engine.registry.known import StoredNames

TEXT = b"""rule gate
  condition small when amount < 100.00 then deny
  must "small payments are never denied" when amount < 5.00 never deny
  must when amount > 500.00
    never allow
"""
NOTHING = StoredNames((), {})


def test_each_must_that_was_not_tried_in_time_is_named_by_its_title_or_its_text() -> None:
    found = prove_text(unwatched, TEXT, NOTHING, None, DEFAULT_THRESHOLDS, seconds=0.0)
    assert not found.complete
    assert [each.of for each in found.proofs] == ["small"]
    assert found.untried == (
        "small payments are never denied",
        "must when amount > 500.00 never allow",
    )


def test_with_time_for_all_of_them_no_must_is_untried() -> None:
    found = prove_text(unwatched, TEXT, NOTHING, None, DEFAULT_THRESHOLDS, seconds=600.0)
    assert (found.complete, found.untried) == (True, ())
    assert [each.verdict.answer for each in found.proofs] == ["proved", "refuted", "refuted"]
