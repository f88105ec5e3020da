"""Writes estimated curves into a scorecard's text: in place of the author's, or as new signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tollkeeper.engine.offline.fit.curves import Amounts
from tollkeeper.engine.offline.fit.steps import CutInput, braces
from tollkeeper.grammar.formatter import format_file
from tollkeeper.grammar.parser import parse
from tollkeeper.grammar.syntax import Baseline, Curve, Signal, Span


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """The least and the most that a signal's curve adds to the log-odds."""

    signal: str
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class WrittenCurves:
    text: str
    curves: tuple[FittedCurve, ...]


def write_curves(text: str, found: Sequence[tuple[CutInput, Amounts]]) -> WrittenCurves:
    """The text with these curves, but for new curves that add nothing. A formatted text stays
    formatted.
    """
    is_formatted = format_file(text) == text
    file = parse(text).file
    assert file is not None
    signals = {item.name.text: item for item in file.items if isinstance(item, Signal)}
    written = [each for each in found if each[0].input.curve is not None]
    added = sorted(
        (each for each in found if each[0].input.curve is None and each[1].range()),
        key=lambda each: -each[1].range(),
    )
    places: list[tuple[Span, str]] = []
    for cut, amounts in written:
        curve = signals[cut.input.name].adds
        assert isinstance(curve, Curve)
        opening = text.rindex("{", curve.span.start, curve.span.end)
        places.append((Span(opening, curve.span.end), braces(cut, amounts)))
    end = max(item.span.end for item in file.items if isinstance(item, Signal | Baseline))
    new = "".join(_signal(cut, amounts) for cut, amounts in added)
    places.append((Span(end, end), new))
    for span, replacement in sorted(places, reverse=True):
        text = text[: span.start] + replacement + text[span.end :]
    fitted = [_fitted(cut.input.name, amounts) for cut, amounts in written]
    fitted += [_fitted(f"{cut.input.name}_by_labels", amounts) for cut, amounts in added]
    return WrittenCurves(format_file(text) if is_formatted else text, tuple(fitted))


def _signal(cut: CutInput, amounts: Amounts) -> str:
    name = cut.input.name
    direction = "rising" if cut.steps.ways == (1,) else "falling"
    return f"\n\n  signal {name}_by_labels\n    curves {name} {direction} {braces(cut, amounts)}"


def _fitted(signal: str, amounts: Amounts) -> FittedCurve:
    adds = np.append(amounts.steps, amounts.missing)
    return FittedCurve(signal, float(adds.min()), float(adds.max()))
