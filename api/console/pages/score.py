"""The distribution of scores, and what pairs of thresholds would challenge and deny."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from litestar import Request, get
from litestar.response import Response

from tollkeeper.api.console.answers import html
from tollkeeper.api.console.client import JsonObject
from tollkeeper.api.console.page import CHART_SCRIPTS, page
from tollkeeper.api.console.parts import (
    card_table,
    chart,
    column,
    control_if_allowed,
    decimal,
    field,
    in_turn,
    localize,
    moneys,
    number,
    payments_link,
    percent,
    row,
    table,
    text_of,
)
from tollkeeper.api.console.visit import Visit, target, visit
from tollkeeper.api.html import Html, element, join_html

_LABELS = ("fraud", "legitimate", "none")
_BAND = 10
"""The width of a band in hundredths; a score of 1.00 belongs to the last band."""
_BEFORE = timedelta(days=28)
"""A short span is compared with this long before it."""
_THRESHOLDS = ("challenge", "deny")
SPANS = ("30d", "90d", "365d")
"""The spans to choose from, the default first."""
STEPS = tuple(range(50, 100, 5))
"""The thresholds in the table, in hundredths."""


@get("/console/score")
async def score(request: Request[Any, Any, Any]) -> Response[str]:
    here = await visit(request)
    words = here.words
    since = here.query.get("since", SPANS[0])
    buckets = (await here.client.get("/v1/scores", {"by": "label", "since": since}))["scores"]
    in_force = await _thresholds_in_force(here)
    chosen = _chosen(here, in_force)
    content = join_html(
        element("h1", words("frame.score")),
        _spans(here, since),
        element("p", words("score.note"), class_="hints"),
        await in_turn(here, _curve, buckets, since, chosen),
        element("h2", words("score.weigh"), id="weigh"),
        _weigh_form(here, since, chosen),
        element(
            "div",
            await in_turn(here, _shares, buckets, chosen),
            await _weighed(here, since),
            id="weighed",
            aria_live="polite",
        ),
        element("h2", words("score.thresholds")),
        await in_turn(here, _thresholds, buckets, since, in_force),
        element("h2", words("score.holdout")),
        await _false_positives(here),
    )
    return html(page(here, words("frame.score"), content, scripts=CHART_SCRIPTS))


def _spans(here: Visit, since: str) -> Html:
    """Links to choose the span."""
    links = (
        element(
            "a",
            here.words("score.days", days=span.removesuffix("d")),
            href=here.address(since=span),
            aria_current="true" if span == since else None,
        )
        for span in SPANS
    )
    return element("p", *links, class_="choices")


async def _thresholds_in_force(here: Visit) -> JsonObject:
    """Return the account's thresholds; none for those who may not read settings."""
    if not here.may("settings:read"):
        return {}
    thresholds: JsonObject = (await here.client.get("/v1/account"))["account"]["thresholds"]
    return thresholds


def _chosen(here: Visit, in_force: JsonObject) -> Mapping[str, Decimal]:
    """The thresholds that the page tries, else those in force; none where they are not both known."""
    found: dict[str, Decimal] = {}
    for name in _THRESHOLDS:
        text = here.query.get(name) or str(in_force.get(name, ""))
        try:
            found[name] = Decimal(text)
        except InvalidOperation:
            return {}
    of_scores = (share.is_finite() and 0 <= share <= 1 for share in found.values())
    return found if all(of_scores) else {}


def _shares(here: Visit, buckets: list[JsonObject], chosen: Mapping[str, Decimal]) -> Html:
    """What the chosen thresholds would do to the payments of the time."""
    if not chosen:
        return Html("")

    def count(begin: Decimal, end: Decimal | None, label: str | None = None) -> int:
        within = (
            each
            for each in buckets
            if begin <= Decimal(str(each["score"])) and (end is None or each["score"] < end)
        )
        return sum(
            int(each["payments"]) if label is None else _label_count(each, label) for each in within
        )

    low, high, lowest = chosen["challenge"], chosen["deny"], Decimal(0)
    every, frauds = count(lowest, None), count(lowest, None, "fraud")
    caught, honest = count(high, None, "fraud"), count(high, None, "legitimate")
    shares = {
        "challenged": (count(low, high), every),
        "denied": (count(high, None), every),
        "recall": (count(min(low, high), None, "fraud"), frauds),
        "precision": (caught, caught + honest),
    }
    tiles = (
        element(
            "div",
            element("dt", here.words(f"score.share_{name}")),
            element("dd", percent(here, part, whole, 1)),
        )
        for name, (part, whole) in shares.items()
    )
    return element("dl", *tiles, class_="tiles")


def _weigh_form(here: Visit, since: str, chosen: Mapping[str, Decimal]) -> Html:
    """Cost is asked for: each payment of the time is looked at."""
    fields = (
        field(
            here.words(f"settings.{name}"),
            element(
                "input",
                type="number",
                name=name,
                step="0.01",
                min="0",
                max="1",
                required="",
                value=str(chosen.get(name, "")),
            ),
        )
        for name in _THRESHOLDS
    )
    return element(
        "form",
        element("input", type="hidden", name="since", value=since),
        *fields,
        element("button", here.words("score.weigh_these"), class_="quiet"),
        action="/console/score#weigh",
        class_="line",
        id="thresholds",
        hx_get="/console/score",
        hx_trigger="change delay:300ms, submit",
        hx_target="#weighed",
        hx_select="#weighed",
        hx_swap="outerHTML",
    )


async def _weighed(here: Visit, since: str) -> Html:
    """Show what pairs of thresholds would have stopped, and cost: the current, the requested, and
    the cheapest; empty if none were requested.
    """
    words = here.words
    asked = {name: here.query.get(name) for name in _THRESHOLDS}
    if not any(asked.values()):
        return Html("")
    weighed = await here.client.get("/v1/thresholds", {"since": since, **asked})
    rows = []
    for name in ("now", "asked", "cheapest"):
        outcome = weighed[name]
        if outcome is None:
            continue
        pair = {each: f"{share:.2f}" for each, share in outcome["thresholds"].items()}
        people, frauds = outcome["people"], outcome["frauds"]
        use = element("a", words("score.use"), href=target("/console/settings", **pair))
        rows.append(
            row(
                words(f"score.pair_{name}"),
                localize(here, pair["challenge"]),
                localize(here, pair["deny"]),
                percent(here, frauds["challenged"] + frauds["denied"], frauds["payments"]),
                percent(here, people["denied"], people["payments"]),
                percent(here, people["challenged"], people["payments"]),
                column(moneys(here, outcome["cost"])),
                Html("") if name == "now" else control_if_allowed(here, "settings:write", use),
                numeric=(1, 2, 3, 4, 5, 6),
            )
        )
    titles = ("pair", "challenge", "deny", "stopped", "people_denied", "people_challenged", "cost")
    shown = card_table(
        [*(words(f"score.{title}") for title in titles), words("rule.act")],
        rows,
        words("score.weigh"),
        numeric=(1, 2, 3, 4, 5, 6),
    )
    return join_html(shown, element("p", words("score.weigh_note"), class_="hints"))


def _label_count(bucket: JsonObject, label: str) -> int:
    by = bucket["by"]
    found = bucket["payments"] - sum(by.values()) if label == "none" else by.get(label, 0)
    return int(found)


def _curve(
    here: Visit, buckets: list[JsonObject], since: str, chosen: Mapping[str, Decimal]
) -> Html:
    words = here.words
    rows = []
    for start in range(0, 101, 10):
        band = buckets[start : start + 10]
        low, high = (f"{float(each['score']):.2f}" for each in (band[0], band[-1]))
        query = f"score:{low}..{high} since:{since}"
        links = (
            payments_link(
                here,
                number(here, sum(_label_count(each, label) for each in band)),
                f"{query} label:{label}",
            )
            for label in _LABELS
        )
        span = f"{low}–{high}" if start < 100 else low
        rows.append(row(localize(here, span), *links, numeric=(1, 2, 3)))
    names = [words(f"label.{label}") for label in _LABELS]
    shown = table([words("payments.score"), *names], rows, words("score.spread"), numeric=(1, 2, 3))
    return chart(
        words("score.spread"),
        names,
        [float(each["score"]) for each in buckets],
        [[_label_count(each, label) for each in buckets] for label in _LABELS],
        shown,
        words("frame.as_table"),
        data_kinds="deny allow soft",
        data_plain="1",
        data_across=words("payments.score"),
        **({"data_thresholds": _slider_names(here)} if chosen else {}),
    )


def _slider_names(here: Visit) -> str:
    """What the sliders on the chart are called, by the fields that they move."""
    return json.dumps({name: here.words(f"settings.{name}") for name in _THRESHOLDS})


def _thresholds(here: Visit, buckets: list[JsonObject], since: str, in_force: JsonObject) -> Html:
    """Show what each threshold would deny; the current ones are marked."""
    every = sum(each["payments"] for each in buckets)
    fraud = sum(_label_count(each, "fraud") for each in buckets)
    rows = []
    for step in STEPS:
        above = [each for each in buckets if round(float(each["score"]) * 100) >= step]
        caught = sum(_label_count(each, "fraud") for each in above)
        honest = sum(_label_count(each, "legitimate") for each in above)
        count = sum(each["payments"] for each in above)
        query = f"score_from:{step / 100:.2f} since:{since}"
        begins = next((each for each in _THRESHOLDS if _is(in_force.get(each), step)), None)
        mark = "" if begins is None else here.words(f"score.in_force_{begins}")
        rows.append(
            row(
                join_html(
                    element("span", decimal(here, step / 100, 2)), " ", element("small", mark)
                ),
                payments_link(here, number(here, count), query),
                percent(here, count, every),
                percent(here, caught, fraud),
                percent(here, caught, caught + honest),
                payments_link(here, number(here, honest), f"{query} label:legitimate"),
                numeric=(1, 2, 3, 4, 5),
            )
        )
    titles = ("at", "denied", "share", "recall", "precision", "honest")
    return card_table(
        [here.words(f"score.{title}") for title in titles],
        rows,
        here.words("score.thresholds"),
        numeric=(1, 2, 3, 4, 5),
        class_="rows",
    )


def _is(threshold: Any, step: int) -> bool:
    return threshold is not None and round(float(threshold) * 100) == step


async def _false_positives(here: Visit) -> Html:
    """Show what held-out payments say about denials, with a link to them."""
    found = (await here.client.get("/v1/figures/holdout"))["false_positives"]
    known = found["people"] + found["frauds"]
    if found["share"] is not None:
        said = here.words(
            "score.holdout_share",
            share=percent(here, found["share"]),
            low=percent(here, found["low"]),
            high=percent(here, found["high"]),
            known=number(here, known),
            unripe=number(here, found["unripe"]),
        )
    else:
        said = here.words("score.holdout_unknown", unripe=number(here, found["unripe"]))
    if not known + found["unripe"]:
        return element("p", here.words("score.holdout_none"), class_="empty")
    return element("p", payments_link(here, said, "holdout:true"))


async def scores_beside(here: Visit, since: datetime, until: datetime) -> Html:
    """Show the scores of the payments from `since` to `until` beside those of the four weeks
    before.
    """
    words = here.words
    spans = ((since, until), (since - _BEFORE, since))
    bands, before = await asyncio.gather(*(_bands(here, *span) for span in spans))
    if not sum(bands):
        return Html("")
    rows = []
    for place, (count, known) in enumerate(zip(bands, before, strict=True)):
        low = place * _BAND / 100
        high = 1 if place == len(bands) - 1 else low + (_BAND - 1) / 100
        query = f"score:{low:.2f}..{high:.2f} since:{text_of(since)} until:{text_of(until)}"
        rows.append(
            row(
                f"{decimal(here, low, 2)}–{decimal(here, high, 2)}",
                payments_link(here, number(here, count), query),
                percent(here, count, sum(bands)),
                percent(here, known, sum(before)),
                numeric=(0, 1, 2, 3),
            )
        )
    titles = [words(f"score.{title}") for title in ("at", "denied", "now", "before")]
    shown = table(titles, rows, words("score.beside"), numeric=(0, 1, 2, 3))
    shares = [[100 * count / (sum(each) or 1) for count in each] for each in (bands, before)]
    return chart(
        words("score.beside"),
        titles[2:],
        # Each share holds up to where the next begins, the last up to 1.
        [place * _BAND / 100 for place in range(len(bands) + 1)],
        [[*each, each[-1]] for each in shares],
        shown,
        words("frame.as_table"),
        data_kinds="deny soft",
        data_plain="1",
        data_stepped="1",
        data_across=words("payments.score"),
    )


async def _bands(here: Visit, since: datetime, until: datetime) -> list[int]:
    """Return the number of payments in each band."""
    query = {"by": "action", "since": text_of(since), "until": text_of(until)}
    buckets = (await here.client.get("/v1/scores", query))["scores"]
    counts = [int(each["payments"]) for each in buckets]
    bands = [sum(counts[start : start + _BAND]) for start in range(0, 100, _BAND)]
    bands[-1] += counts[100]
    return bands
