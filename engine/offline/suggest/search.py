"""A beam search for conjunctions of few atoms that stop much fraud and few legitimate payments.

A conjunction is worth the fraud that it stops less a price for each legitimate payment. It
qualifies only if the lower bound of its precision reaches the target, and if it stops several
incidents. Conjunctions are taken one by one, each by what it adds to the earlier ones. One that
fails in a period that the search does not use is dropped, and others may stop its payments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tollkeeper.engine.offline.suggest.atoms import Atom
from tollkeeper.engine.progress import Progress

Bits: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
"""One bit for each payment, in words of 64."""

_Z = 1.2815515594600038
"""The normal quantile of a one-sided 90 % bound."""
_BEAM = 80
_LONGEST = 3
_TRIES = 3
"""How many times the wanted number of conjunctions is tried, as some fail."""
_MOST_SHARED = 0.9
"""Two conjunctions are alike when they share this part of all payments that either meets."""


@dataclass(frozen=True, slots=True)
class SearchAims:
    """`price` is how many stopped payments one legitimate payment is worth; `precision` what the
    lower bound must reach; `people` the share of legitimate payments that all conditions together
    may meet; `without` are the families that no condition may read (`SuggestionColumn`)."""

    conditions: int = 5
    price: float = 30.0
    precision: float = 0.9
    people: float = 0.002
    incidents: int = 3
    without: frozenset[str] = frozenset()


class Conjunction(NamedTuple):
    """Atoms by their indexes, with the fraudulent and legitimate payments that meet all of them."""

    atoms: tuple[int, ...]
    fraud: Bits
    honest: Bits


class SearchSpace:
    """The atoms evaluated on fraudulent and on legitimate payments."""

    def __init__(
        self,
        atoms: Sequence[Atom],
        rows: np.ndarray[Any, Any],
        fraud: np.ndarray[Any, Any],
        incidents: np.ndarray[Any, Any],
    ) -> None:
        """`rows` are the indexes of the payments, `fraud` whether each of them is; `incidents` are
        those of the fraudulent ones."""
        self.families = [atom.column.family for atom in atoms]
        self.bad, self.good = rows[fraud], rows[~fraud]
        self.fraud = _pack_bits([atom.holds[self.bad] for atom in atoms])
        self.honest = _pack_bits([atom.holds[self.good] for atom in atoms])
        self._incidents = incidents

    def incidents(self, fraud: Bits) -> int:
        """The number of incidents among these fraudulent payments."""
        flags = np.unpackbits(fraud.view(np.uint8), bitorder="little")[: len(self.bad)]
        return len(set(self._incidents[flags.astype(np.bool_)].tolist()))


def wilson(hits: int, of: int, sign: int = -1) -> float:
    """The lower (with `sign` 1 the upper) 90 % Wilson bound of a share."""
    if of == 0:
        return 0.0 if sign < 0 else 1.0
    share, square = hits / of, _Z * _Z
    spread = _Z * sqrt(share * (1 - share) / of + square / (4 * of * of))
    return max(0.0, min(1.0, (share + square / (2 * of) + sign * spread) / (1 + square / of)))


class Cover(NamedTuple):
    """The conjunctions that were taken, in order, and those that failed."""

    taken: list[Conjunction]
    dropped: list[Conjunction]


def cover(
    space: SearchSpace,
    aims: SearchAims,
    floor: float,
    holds: Callable[[Conjunction, Sequence[Conjunction]], bool],
    progress: Progress,
) -> Cover:
    """Conjunctions worth more than `floor`, each by what it adds to the earlier ones.

    `holds` says whether one, added to those taken before it, holds in a period that the search does
    not use. After a failure, conjunctions alike are not tried again.
    """
    taken: list[Conjunction] = []
    dropped: list[Conjunction] = []
    fraud, honest = _all(len(space.bad)), _all(len(space.good))
    room = int(aims.people * len(space.good))
    for step in range(_TRIES * aims.conditions):
        best = best_conjunction(space, fraud, honest, room, aims, dropped)
        progress((step + 1) / (_TRIES * aims.conditions))
        if best is None or worth(best, fraud, honest, aims) <= floor:
            break
        if not holds(best, taken):
            dropped.append(best)
            continue
        taken.append(best)
        if len(taken) == aims.conditions:
            break
        room -= _count(best.honest & honest)
        fraud, honest = fraud & ~best.fraud, honest & ~best.honest
    return Cover(taken, dropped)


def best_conjunction(
    space: SearchSpace,
    fraud: Bits,
    honest: Bits,
    room: int,
    aims: SearchAims,
    dropped: Sequence[Conjunction] = (),
    beam: int = _BEAM,
) -> Conjunction | None:
    """The best conjunction for the remaining payments that meets at most `room` further legitimate
    ones and is not alike to one that was `dropped`."""
    best: tuple[float, Conjunction] | None = None
    front = [Conjunction((), _all(len(space.bad)), _all(len(space.good)))]
    for _ in range(_LONGEST):
        found: dict[tuple[int, int, frozenset[str]], tuple[float, Conjunction, int]] = {}
        for conjunction in front:
            for gain, made, people in _extend(space, conjunction, fraud, honest):
                key = (_count(made.fraud & fraud), people, _families(space, made))
                if key not in found or found[key][0] < gain:
                    found[key] = (gain, made, people)
        ranked = sorted(found.values(), key=lambda each: -each[0])[: beam * 4]
        for _, made, people in ranked:
            value = worth(made, fraud, honest, aims)
            stopped = _count(made.fraud & fraud)
            if people > room or (best is not None and value <= best[0]):
                continue
            if wilson(stopped, stopped + people) < aims.precision:
                continue
            if any(_overlaps(made, each) for each in dropped):
                continue
            if space.incidents(made.fraud & fraud) >= aims.incidents:
                best = value, made
        front = [made for _, made, _ in ranked[:beam]]
    return None if best is None else best[1]


def worth(conjunction: Conjunction, fraud: Bits, honest: Bits, aims: SearchAims) -> float:
    """The remaining fraud that it stops, less the price of the legitimate payments and of its
    length."""
    value = _count(conjunction.fraud & fraud) - aims.price * _count(conjunction.honest & honest)
    return value * (1 - 0.02 * (len(conjunction.atoms) - 1))


def chance(
    space_of: Callable[[np.ndarray[Any, Any]], SearchSpace],
    fraud: np.ndarray[Any, Any],
    aims: SearchAims,
) -> float:
    """The worth of the best conjunction for meaningless labels: the labels are shifted in time,
    three times, so that attacks stay together but belong to other payments."""
    worths = [0.0]
    for quarter in (1, 2, 3):
        moved = np.roll(fraud, quarter * len(fraud) // 4)
        space = space_of(moved)
        left = _all(len(space.bad)), _all(len(space.good))
        room = int(aims.people * len(space.good))
        best = best_conjunction(space, *left, room, aims, beam=20)
        if best is not None:
            worths.append(worth(best, *left, aims))
    return max(worths)


def _extend(
    space: SearchSpace, conjunction: Conjunction, fraud: Bits, honest: Bits
) -> list[tuple[float, Conjunction, int]]:
    """The conjunction extended by one atom of another family: the best by information gain."""
    used = _families(space, conjunction)
    stopped = _counts(space.fraud & (conjunction.fraud & fraud))
    people = _counts(space.honest & (conjunction.honest & honest))
    prior = (_count(fraud) + 1) / (_count(fraud) + _count(honest) + 2)
    gains = stopped * (np.log2((stopped + 0.5) / (stopped + people + 1.0)) - np.log2(prior))
    extended = []
    for index in np.argsort(-gains)[: _BEAM * 2]:
        if gains[index] <= 0:
            break
        if space.families[index] in used:
            continue
        made = Conjunction(
            (*conjunction.atoms, int(index)),
            conjunction.fraud & space.fraud[index],
            conjunction.honest & space.honest[index],
        )
        extended.append((float(gains[index]), made, int(people[index])))
    return extended


def _overlaps(one: Conjunction, other: Conjunction) -> bool:
    both = _count(one.fraud & other.fraud) + _count(one.honest & other.honest)
    either = _count(one.fraud | other.fraud) + _count(one.honest | other.honest)
    return both > _MOST_SHARED * either


def _families(space: SearchSpace, conjunction: Conjunction) -> frozenset[str]:
    return frozenset(space.families[index] for index in conjunction.atoms)


def _pack_bits(rows: Sequence[np.ndarray[Any, Any]]) -> Bits:
    """Pack each row of booleans into a row of bits."""
    flags = np.packbits(np.array(rows, np.bool_), axis=1, bitorder="little")
    padded = np.pad(flags, ((0, 0), (0, -flags.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(np.uint64)


def _all(count: int) -> Bits:
    found: Bits = _pack_bits([np.ones(count, np.bool_)])[0]
    return found


def _count(bits: Bits) -> int:
    return int(np.bitwise_count(bits).sum())


def _counts(rows: Bits) -> np.ndarray[Any, Any]:
    counts: np.ndarray[Any, Any] = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    return counts
