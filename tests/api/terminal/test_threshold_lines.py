"""`toll thresholds` draws where people and frauds have their scores, and prints what each pair makes."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tollkeeper.api.http.thresholds import thresholds_answer
from tollkeeper.api.terminal.output import print_lines
from tollkeeper.api.terminal.threshold_lines import threshold_lines
from tollkeeper.engine.registry.changes import Costs, Thresholds
from tollkeeper.engine.search.thresholds import PaidTotal, ScoreBand

OWN = Thresholds(50, 85)


def paid(payments: int) -> PaidTotal:
    return PaidTotal(payments, {"EUR": 1_000 * payments}, {"EUR": payments})


def printed(bands: list[ScoreBand], asked: Thresholds, capsys: pytest.CaptureFixture[str]) -> str:
    answer = thresholds_answer(bands, OWN, asked, Costs(1_500, 1_200, 300), 0)
    print_lines(threshold_lines(answer))
    return capsys.readouterr().out


def test_bars_and_pairs_are_printed_as_they_are_read(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    bands = [
        ScoreBand(score, paid(max(0, 80 - score)), paid(max(0, score - 40)), score % 3)
        for score in range(101)
    ]
    assert printed(bands, Thresholds(45, 80), capsys) == snapshot


def test_without_labels_it_says_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    bands = [ScoreBand(score, paid(0), paid(0), 1) for score in range(101)]
    told = "no scored payment has a label yet, or is 45 days old\n"
    assert printed(bands, OWN, capsys) == told
