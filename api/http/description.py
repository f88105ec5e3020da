"""The introduction of the API's description: what applies to every operation (docs/api.md)."""

from __future__ import annotations

from typing import Final

from tollkeeper.api.http.bodies import MAX_KEY
from tollkeeper.api.http.error_answers import TYPES
from tollkeeper.api.http.settings import BODY_BYTES, BODY_SECONDS, HEAD_BYTES
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.intake.limits import DEFAULT_LIMITS
from tollkeeper.engine.intake.payment import MAX_HEADER, MAX_HEADERS, MAX_TEXT, MAX_TRANSACTIONS
from tollkeeper.engine.intake.violations import MAX_LISTED
from tollkeeper.grammar.parser import MAX_FILE_BYTES

KIB: Final = 1024

_TYPES = "\n".join(f"| `{name}` | {doc} |" for name, doc in TYPES.items())

DESCRIPTION: Final = f"""Tollkeeper scores each payment for automated behaviour, sends it through a rule, and answers `allow`, `challenge` or `deny`, with the rule and the condition that said so.

## Authentication

`Authorization: Bearer <key>`. A key belongs to one account, or to its test account, and has scopes, which each operation names. Bundles stand for several: `payments` reports payments and events and reads them, `rules` changes what decides, `admin` is all. A key that is missing, wrong or revoked gets 401, one without the scope 403. Nothing of another account can be seen or guessed.

## Requests

A path is matched as it is sent: a slash more or less is another path. `HEAD` answers wherever `GET` does, `OPTIONS` with the methods of a path.

Every answer has an `X-Request-Id`: the request's own when it is 1 to 128 visible ASCII characters, else a random one. A parameter of the query that the operation does not read gets 422 (`unknown_member`).

A key and its account may send so many requests a second, payments and events apart from the others: more get 429 with `Retry-After`. `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds) tell what is left.

Bodies are JSON in UTF-8, sent as `application/json`, another `application/*+json`, or without a `Content-Type`; the text of a rule is `text/*` or `application/octet-stream`. A body of another type, or in a content coding such as `gzip`, gets 415.

Member names are case-sensitive. In payments and events unknown members are ignored. In whatever changes a setting (the account, lists, versions in force, webhooks) a member that nothing reads is refused, so that a typo can't pass unseen. A member takes `null` only where its schema says so, and null means the same as leaving it out. A required text must not be empty; where a value may be left blank, an empty text counts as null. An id may hold any character; in a path it is percent-encoded, `/` as `%2F`.

| limit | value |
|---|---|
| body | {BODY_BYTES // KIB} KiB, whole within {BODY_SECONDS} seconds, unless the operator has set another |
| rule file | {MAX_FILE_BYTES // KIB} KiB |
| ids and other short texts | {MAX_TEXT} characters |
| headers in `headers` | {MAX_HEADERS}, each {MAX_HEADER // KIB} KiB |
| `metadata` | {DEFAULT_LIMITS.metadata_size // KIB} KiB, nested {DEFAULT_LIMITS.metadata_depth} deep |
| `transactions` | {MAX_TRANSACTIONS} |
| idempotency key | 1 to {MAX_KEY} characters of printable ASCII |
| head of a request | {HEAD_BYTES // KIB} KiB, unless the operator has set another |

## Time

Timestamps are ISO 8601 in its extended or basic form, with an offset; seconds may be left out: `2026-09-10T00:26:40Z`, `20260910T0026Z`, `2026-09-09T21:26:40,5-03:00`. Those of payments, transactions and events are at most {DEFAULT_LIMITS.backfill // HOUR} hours old and not in the future, both checked against one reading of the service's clock. The account's `clock_skew_ms` allows for clocks that differ; it is 0 unless changed.

## Errors

Every error of every status has one body: `{{"errors": [{{"field", "type", "message"}}]}}`, all strings. All violations of a request come back together, at most {MAX_LISTED} of them. `field` is the path from the top of the body (`payment.transactions[0].connector.response_code`), or `body`, `authorization`, `path`, `method`, a parameter's or a header's name. `message` is for people and may change; `type` is stable:

| type | meaning |
|---|---|
{_TYPES}

Where a request holds a rule's text, `type` is the code of a diagnostic (`unknown-name`) and `field` its place in the text (`checkout.rule:12:31`).

A method that a path does not have gets 405 and the header `Allow`. A 503 has `Retry-After`, in seconds. What comes before a route is known, such as a head of too many bytes (431), has the same body.

## Sending again

`POST /v1/payments`, and `POST /v1/events` with one event, may be sent again for 24 hours under one `Idempotency-Key`: the same request gets the stored answer with `Idempotent-Replayed: true`, another method, path or body gets 422. A `PATCH` may be sent again as it is if each of its transactions has an `id`: others are added each time.
"""
