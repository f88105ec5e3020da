"""How scores are spread, and what each pair of thresholds would challenge and deny."""

from __future__ import annotations

from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import page
from tollkeeper.api.console.parts import chart, number, payments_link, percent, row, table
from tollkeeper.api.console.visit import Visit, visit
from tollkeeper.api.html import Html, element, join_html

_LABELS = ("fraud", "legitimate", "none")
STEPS = tuple(range(50, 100, 5))
"""Thresholds that the table tells of, in hundredths."""


@get("/console/score")
async def score(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    since = here.query.get("since", "30d")
    buckets = (await here.client.get("/v1/scores", {"by": "label", "since": since}))["scores"]
    content = join_html(
        element("h1", words("frame.score")),
        element("p", words("score.note", since=since)),
        _curve(here, buckets),
        element("h2", words("score.thresholds")),
        _thresholds(here, buckets, since),
    )
    return html(page(here, words("frame.score"), content, scripts=("vendor/uplot.js",)))


def _label_count(bucket: JsonObject, label: str) -> int:
    found = bucket["by"].get(label, 0)
    return int(found)


def _curve(here: Visit, buckets: list[JsonObject]) -> Html:
    words = here.words
    rows = [
        row(
            f"{buckets[start]['score']:.2f}–{buckets[min(start + 9, 100)]['score']:.2f}",
            *(
                number(sum(_label_count(each, label) for each in buckets[start : start + 10]))
                for label in _LABELS
            ),
            numeric=(1, 2, 3),
        )
        for start in range(0, 101, 10)
    ]
    names = [words(f"label.{label}") for label in _LABELS]
    shown = table([words("payments.score"), *names], rows, words("score.spread"), numeric=(1, 2, 3))
    return chart(
        words("score.spread"),
        names,
        [float(each["score"]) for each in buckets],
        [[_label_count(each, label) for each in buckets] for label in _LABELS],
        shown,
        words("frame.as_table"),
        data_kinds="deny allow none",
        data_plain="1",
    )


def _thresholds(here: Visit, buckets: list[JsonObject], since: str) -> Html:
    every = sum(each["payments"] for each in buckets)
    fraud = sum(_label_count(each, "fraud") for each in buckets)
    rows = []
    for step in STEPS:
        above = [each for each in buckets if round(float(each["score"]) * 100) >= step]
        caught = sum(_label_count(each, "fraud") for each in above)
        honest = sum(_label_count(each, "legitimate") for each in above)
        count = sum(each["payments"] for each in above)
        query = f"score_from:{step / 100:.2f} since:{since}"
        rows.append(
            row(
                f"{step / 100:.2f}",
                payments_link(here, number(count), query),
                percent(count, every),
                percent(caught, fraud),
                percent(caught, caught + honest),
                number(honest),
                numeric=(0, 1, 2, 3, 4, 5),
            )
        )
    titles = ("at", "denied", "share", "recall", "precision", "honest")
    return table(
        [here.words(f"score.{title}") for title in titles],
        rows,
        here.words("score.thresholds"),
        numeric=(0, 1, 2, 3, 4, 5),
        class_="rows",
    )
