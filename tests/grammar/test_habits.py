"""What authors write out of habit: what is said of it, and what the first fix makes of it."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.source import read_file
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.fixes import apply_fixes
from tollkeeper.grammar.render import Source, as_text

AGE = "age(payments by user.id)"
CONDITIONS = {
    "includes": 'user.email includes "x"',
    "like": 'user.email like "x%"',
    "like_end": 'user.email like "%x"',
    "like_both": 'user.email LIKE "%x%"',
    "like_pattern": 'user.email like "x_y%"',
    "round_list": 'type in ("purchase","verify")',
    "round_list_of_one": 'type in ("verify")',
    "decimal_comma": "score > 9,99",
    "percent": "score > 50%",
    "currency": "amount > 500 EUR",
    "spelled_unit": f"{AGE} > 1hour or {AGE} > 3d",
    "minutes": "count(payments by user.id over 60min) > 2",
    "week": "count(payments by user.id over 1w) > 2",
    "apart": "count(payments by user.id over 1 h) > 2",
    "seconds": f"{AGE} >= 60",
    "quoted_duration": f'{AGE} >= "7d"',
    "header": 'device.headers.user_agent == "x"',
    "transactions": 'transactions.status == "declined"',
    "past_midnight": "hour(timestamp) between 22 and 5",
    "downwards": "score between 0.9 and 0.1",
    "range": "score > 1",
    "decimals": "score == 0.555",
    "methods": 'user.email.lower() == "x" or user.id.endsWith("x")',
    "method": 'user.email.split("@") == "x"',
    "operators": 'user.email startswith "x" or user.email begins with "x"',
    "words": "score is greater than 0.5 or score at least 0.5",
    "equals": 'user.id equals "x"',
    "called_operator": 'AND(type == "a,b"; contains(user.email, "a,b")) or OR(score > 1, not (user.id is missing))',
    "not_contains": 'type == "verify" and user.email not contains "x"',
    "does_not": 'user.email does not start with "x"',
    "not_equal": 'user.id not == "x"',
    "like_quoted": "user.email like '%x'",
    "null": 'user.id == null or user.email is not null or user.email is "x" or user.id is not "x"',
    "is_not_missing": "user.id is not missing or user.email is empty or device !is missing",
    "is_in": 'type is in ["verify"] or type is not in ["purchase"] or user.id exists',
    "to": "score between 0.1 to 0.5 or score between (0.5, 0.8)",
    "bare_list": 'type in "purchase", "verify"',
    "braces": 'type in {"purchase", "verify"}',
    "no_comma": 'type in ["purchase" "verify"]',
    "trailing_comma": 'type in ["purchase", "verify",]',
    "semicolon": 'left(user.id; 3) == "abc"',
    "quoted_pattern": 'user.email matches "^a/b\\\\d"',
    "flag": "user.email matches /a/g",
    "slash": "user.email matches /http://x/",
    "symbol": "amount > $500 or amount > 500€",
    "joined_currency": "amount > 500EUR",
    "grouped": "amount > 1.000,50 or amount > 1 000 or amount > 1'000.5 or amount > 1.000.000",
    "short": "amount > 10k or amount > 1.5M or amount > 1e3",
    "plus": "amount > +5",
    "months": "count(payments by user.id over 2 months) > 2",
    "year": "count(payments by user.id over 1y) > 2",
    "capital_m": "count(payments by user.id over 1M) > 2",
    "quoted_length": 'count(payments by user.id over "1h") > 2',
    "per_last": "count(payments per user.id within the last 1h) > 2",
    "over_last": 'count(payments by user.id over the last 1h with status == "declined") > 2',
    "count_distinct": "count(distinct payments.user.id by device.ip_address over 1h) > 2",
    "count_all": "count(*) > 2",
    "colons": ':amount: > 5 and ::sku:: == "x"',
    "wide": "amount ＞ ５",
    "accent": "amóunt > 5",
    "other_script": "аmount > 5",
    "unquoted": "currency == eur or type in [verify] or amount_in(usd) > 5",
    "unquoted_text": "user.id == abc",
    "quoted_number": 'score > "0.5" or user.id == 411111 or device.client.consistent == "true"',
    "one_comparison": 'type == "verify" or "purchase"',
    "or_of_texts": 'type == ("verify" or "purchase") or user.id != ("a" or "b")',
    "list_of_one": 'user.id in "a"',
    "window_in": "count(payments by user.id in 1h) > 2",
    "keys_and": "count(payments by user.id and method.card.bin over 1h) > 2",
    "one_payment": "count(payment by user.id over 1h) > 2",
    "field_alone": "sum(amount by user.id, currency over 1h) > 2",
    "functions": "len(user.id) > 5 and average(transactions.duration) > 5",
    "presence": "isblank(user.id) or exists(user.id)",
    "clock": "timestamp < now()",
    "function_alone": "hour > 22",
    "last_part": 'country == "BR"',
    "unclosed": "(user.id is missing or (user.email is missing)",
    "score_of_hundred": "score > 80 or score >= 75",
    "now": "timestamp > now - 1h",
    "user_agent": 'device.user_agent contains "x" or backend.accept_language == "x"',
    "renamed": 'card_bin == "41111111" or device.browser == "chrome" or method.card.last4 == "1234"',
    "cased": 'User.Email == "x" or device.ipAddress is missing or AMOUNT_USD > 5',
    "other_names": 'created_at > "2026-01-01" or customer_id == "x" or risk_score > 0.6',
    "no_fields": "card_country == ip_country or is_vpn or user.age < 7d or shipping > 5",
    "functions_as_fields": 'timestamp.hour > 22 or email.domain in ["x.com"]',
    "texts_of_one": 'user.email ends with "a" or "b" or score > 0.5 and type != "verify" or "purchase"',
    "text_in_text": '"@x.com" in user.email or "y" not in user.email',
    "kept_list": "score > 0.5 and user.id in [@blocked]",
    "groups": 'count(payments by user over 1h) > 2 or method.card == "visa"',
    "counted": "transactions > 3 or transactions.count > 3",
    "numbered": 'transactions[0].status == "declined"',
    "dashed_header": 'device.headers.user-agent contains "x"',
    "values": 'method.card.network == "amex" or status == "refused" or weekday(timestamp) == "Sunday"',
    "weekday": "weekday(timestamp) == 6",
    "bare_key": 'metadata[sku] == "x"',
    "cards": "count(cards by device.fingerprint.id over 1h) > 3 or distinct(users by device.ip_address over 1h) > 2",
    "call_form": "count(payments, user.id, method.card.bin, 1h) > 3",
    "in_range": "score in range(0.1, 0.5)",
    "address": "user.email ends with @x.com",
    "declined_before": "count(declined payments by user.id over 1h) > 3",
    "declined_after": 'count(transactions declined by user.id over 1h) > 3 or type == "verify"',
    "big_before": "count(big payments by user.id over 1h) > 3",
    "previous": "count(previous payments by user.id over 1h) > 3",
    "number_of": "number of payments by user.id over 1h > 3",
    "more_than": "more than 3 payments by user.id in the last 1h",
    "no_brackets": "count payments by user.id over 1h > 3",
    "no_call": "payments by user.id over 1h > 3",
    "in_the_last": "count(payments by user.id in the last 24h) > 3",
    "clauses_outside": "count(payments) by user.id over 1h > 3",
    "no_where": 'count(payments by user.id over 1h status == "declined") > 3',
    "and_for_where": 'count(payments by user.id over 1h and status == "declined") > 3',
    "comma_before_clause": "count(payments by user.id, over 1h) > 3",
    "clauses_turned": 'count(payments where status == "declined" over 1h by user.id) > 3',
    "function_without_brackets": 'lower user.email == "x"',
    "subject_once": 'user.email contains "a" or contains "b" or score > 0.1 and < 0.5',
    "twice": "0.1 < score < 0.5",
    "address_alone": "user.email == x@y.com",
    "clock_time": "timestamp between 22:00 and 05:00",
    "from_to": "score from 0.1 to 0.5",
    "dots": "score in 0.1..0.5",
    "dash": "score between 0.1 - 0.5",
    "list_in_words": "score > 0.5 and user.id in list blocked",
    "is_a_name": "type is verify",
    "is_new": "user is new",
    "remainder": "amount % 10 == 0",
    "power": "amount ** 2 > 5",
    "either": "either score > 0.5 or score < 0.1",
    "unless": "score > 0.5 unless user.id is missing",
    "comma": "score > 0.5, user.id is missing",
    "domain_of_a_field": '"x.com" == user.email.domain or score > 0,5',
    "key_of_records": "age(user.id) < 7d or first(user.id)",
    "subject_of_lists": 'user.id in ["a"] or in ["b"]',
    "nested_entry": "metadata.cart.items > 5",
    "long_window": "count(payments by user.id over 365d) > 3",
    "address_as_text": 'device.ip_address starts with "10." or merchant.country == "Brazil"',
    "semicolon_and": "score > 0.5; user.id is missing and and user.email is missing",
    "comma_of_texts": 'user.email ends with "a", "b"',
    "of_a_card": "card.country == merchant.country",
    "part_of_a_text": 'user.email[0] == "a"',
    "arrow": "metadata->>'sku' == \"x\"",
    "over_a_number": "score over 0.5 and score is below 0.9",
    "times": "count(payments by user.id over 1h) > 5 times",
    "factor": "count(payments by user.id over 1h) > 3 x 5",
    "two_whens": "score > 0.5 when user.id is missing",
    "regex_call": 'regex(user.email, "a")',
}
"""Each leaves no error after some rounds of first fixes, if it is not in `UNMENDED`."""
FILES = {
    "comment": "rule r\n  // hi\n  condition c when score > 0.5 then deny\n",
    "no_header": "condition c when score > 0.5 then deny\n",
    "comments": "rule r -- a\n  /* b */\n  condition c when score > 0.5 then deny /* c */\n",
    "open_comment": "rule r\n  /* a\n  b */\n  condition c when score > 0.5 then deny\n",
    "quoted_name": 'rule "My shop"\n  use "velocity"\n  condition "Card testing" when score > 0.5 then deny\n',
    "name_of_words": "rule my shop\n  condition card testing attack when score > 0.5 then deny\n",
    "name_with_dash": "rule my-rule\n  condition c when score > 0.5 then deny\n",
    "colons_after_words": "rule: r\n  condition: c\n    when: score > 0.5\n    then: deny\n",
    "blocks": "rule r {\n  condition c { when score > 0.5 then deny; }\n}\n",
    "let": "rule r\n  let a: 1\n  var b = a\n  import velocity\n  condition c when score > b then deny\n",
    "otherwise": "rule r\n  condition c if score > 0.5 then deny\n  otherwise then allow\n",
    "else": "rule r\n  when score > 0.5 then deny\n  else allow\n",
    "list_sign": "rule r\n  list l: text\n  condition c when user.id in l then deny\n",
    "of_definitions": "rule r\n  use velocity\n  condition c when velocity.cards_1h_per_device > 5 then deny\n",
    "below": "rule r\n  let b = a + 1\n  let a = 1\n  condition c when b > score then deny\n",
    "types": "event e\n  field a: varchar required\n  field b: int\n  field c: timestamp\n  field d: Boolean\n",
    "entries": 'rule r\n  list l = ["a"]\n  condition c when user.id in @l then deny\n',
    "uses": "rule r\n  use velocity.rule\n  use velocity, velocity\n",
    "given": (
        'rule r\n  condition c when score > 0.5 then deny\n  test "a" when amount: 5.00 then deny\n'
        '  test "b" given amount = 5.00 and score = 0.9 expect deny\n'
        '  test "c" given amount = 5.00 score = 0.9 expect deny\n'
        '  test "d" given user.id = null expect deny\n'
        '  test "e" given user.id = missing expect deny\n'
    ),
    "must": 'rule r\n  must "m" when score > 0.5 never deny or challenge\n',
    "signals": (
        "scorecard s\n  baseline: 3%\n  signal a 0.5 when user.id is missing\n"
        "  signal b add 0.5 if user.id is missing\n  signal d adds = +0.5\n"
        "  signal e when user.id is missing adds 0.5\n"
    ),
    "curves": (
        "scorecard s\n  baseline 0.03\n"
        "  signal a curve length(user.id) { < 3 = 1; 5: 2, otherwise 3 }\n"
        "  signal b curves length(user.id) increasing { < 3: 1, else: 2 }\n"
    ),
    "fields": (
        'event e\n  field a: "x", "y", required\n  field b: required string\n'
        "  metric m count(events per a within 1h)\n"
        "  monitor n when m > 5 per a each 10m\n  monitor o when m > 5 every 10m by a\n"
        "  monitor p when m > 5 then alert\n"
    ),
    "two_rules": "rule r\n  condition c when score > 1 then deny\nrule q\n  condition c when x then deny\n",
    "quoted_action": 'rule r\n  condition c when score > 0.5 then "deny"\n',
    "lines": (
        "rule r\n  if score > 0.5 then deny\n  score > 0.6: block # why\n"
        '  Block if :score: > 0.7;\n  deny when user.id == "x"\n'
        "  condition when score > 0.8 then challenge\n"
    ),
    "radar": (
        "rule radar\n  Block if :risk_score: > 65\n  Review if :amount: > 500\n"
        "  Allow if :email_domain: = 'corp.com'\n"
    ),
    "sql": (
        "rule sql\n  let big = amount > 1,000 AND currency = 'USD'\n"
        "  condition a WHERE big OR user.email LIKE '%@x.com' then BLOCK\n  ELSE allow;\n"
    ),
    "line_alone": "if score > 0.5 then deny\n",
    "json": '{"rule": "r"}\n',
    "texts_after": (
        'rule r\n  condition c when score > 0.5 then deny "too risky"\n'
        "  condition d when score > 0.4 then challenge because risky\n"
        "  condition e when score > 0.3 then challenge, deny\n"
        '  condition f when score > 0.2 then challenge.\n  otherwise allow "fine"\n'
    ),
    "labels_and_alerts": (
        "event e\n  field a: string required\n  metric n = count(events by a over 1h)\n"
        '  monitor m when n > 3\n  label fraud when a == "x"\n'
        '  test "t" given a = "u", n = 4 expect alert\n'
    ),
    "tables": (
        "rule r\n  table hosts by ip: owner: string\n"
        "  condition c when @places[device.ip_address].country == merchant.country\n"
        '    or @bins[method.card.bin].kind == "x" or @hosts[device.ip_address].owner == "y"\n'
        "    then deny\n"
    ),
    "baseline": "scorecard s\n  baseline 3\n",
    "alert": "rule r\n  condition c when score > 0.5 then alert\n",
    "expects_not": (
        "rule r\n  condition c when score > 0.5 then deny\n"
        '  test "t" given score = 0.1 expect not deny\n'
    ),
    "when_after": "rule r\n  condition c when score > 0.5 then deny when user.id is missing\n",
    "else_after": "rule r\n  condition c when score > 0.5 then deny else allow\n",
    "arrows": (
        "rule r\n  condition c when score > 0.5 => deny\n  condition d when score > 0.4: deny\n"
        "  condition e when score > 0.3 challenge\n  condition f score > 0.2 then challenge\n"
        "  condition g: score > 0.1 then challenge\n"
    ),
    "actions": (
        'rule r\n  condition c when score > 0.5 then action = "deny"\n'
        "  condition d when score > 0.4 then return challenge\n"
        "  condition e when score > 0.3 then request 3ds\n"
        "  condition f when score > 0.2 then request_3ds\n"
    ),
    "musts": (
        "rule r\n  condition c when score > 0.9 then deny\n"
        '  must "a" when score < 0.5 then allow\n  must "b" when score < 0.5 not deny\n'
        '  must "c" never deny when score < 0.5\n  must "d" when score < 0.5 never be denied\n'
        '  must "e" when score > 0.95 deny\n'
    ),
    "names_without_let": "rule r:\n  x = 0.5\n  let y be 0.6\n  condition c when score > x + y then deny\n",
    "list_of_entries": 'rule r\n  list l: ["a"]\n  condition c when user.id in @l then deny\n',
    "tests": (
        "rule r\n  condition c when score > 0.5 then deny\n"
        "  test small given score = 0.9 expect deny\n"
        '  test "b" score = 0.9 expect deny\n  test "c" given score is 0.9 expect == deny\n'
        '  test "d" given amount = $6, score = 0.9 should deny\n'
        '  test "e" given score = 0.9 expect "deny"\n  test "f" given score = 0.9 expect deny because c\n'
        '  test "g" given user = "x", score = 0.9 expect deny\n'
        '  test "h" given payment = "p.json" expect deny\n  test "i" given history h.json expect deny\n'
    ),
    "given_calls": (
        "rule r\n  condition c when score > 0.5 then deny\n"
        '  test "a" given count(payments by user.id over 1h) = 4 expect deny\n'
        '  test "b" given device.headers["A"] = "x", method = "y" expect deny\n'
    ),
    "points": (
        "scorecard s\n  baseline 0.03\n  signal a +0.5 when user.id is missing\n"
        "  signal b adds 2 points when user.id is missing\n"
        "  signal c subtracts 0.5 when user.id is missing\n"
    ),
    "if_of_a_scorecard": "scorecard s\n  baseline 0.03\n  if user.id is missing add 0.5\n",
    "action_of_a_signal": "scorecard s\n  baseline 0.03\n  signal a adds 0.5 then deny\n",
    "wishes": (
        'event e\n  field a string required\n  field b: string optional\n  field c: "x" or "y"\n'
        '  field d: enum("x", "y")\n  field f: string not null\n  g: string\n'
    ),
    "file_and_values": 'rule r\n  test "t" given history "f", amount = 5.00 expect default\n',
}
TEXTS = {
    name: f"rule r\n  condition c when {written} then deny\n"
    for name, written in CONDITIONS.items()
} | FILES


@pytest.mark.parametrize("name", TEXTS)
def test_a_habit_is_told_how_it_is_said_here(name, snapshot):
    text = TEXTS[name]
    found = [each for each in read_file(text.encode(), KnownNames()).diagnostics if each.help]
    fixed = apply_fixes(text, [fix for each in found for fix in each.fixes[:1]])
    assert f"{as_text(Source.of('habit.rule', text), found)}\nfixed:\n{fixed}" == snapshot


UNMENDED = {
    *(
        "like_pattern",
        "method",
        "called_operator",
        "slash",
        "capital_m",
        "count_all",
        "other_script",
    ),
    *(
        "presence",
        "clock",
        "below",
        "open_comment",
        "entries",
        "given",
        "signals",
        "fields",
        "two_rules",
        "uses",
    ),
    *("now", "no_fields", "groups", "numbered", "weekday", "big_before", "clock_time", "is_new"),
    *("remainder", "power", "regex_call", "json", "when_after", "list_of_entries"),
    *("if_of_a_scorecard", "action_of_a_signal", "given_calls"),
    *(
        "labels_and_alerts",
        "address_as_text",
        "of_a_card",
        "part_of_a_text",
        "alert",
        "expects_not",
    ),
    "decimal_comma",  # `9,99` is past the score's range, whatever is meant
}
"""What has several meanings, or a part that only the author knows."""
MOST_ROUNDS = 6
"""An error can hide the next one of its item."""


@pytest.mark.parametrize("name", TEXTS)
def test_the_first_fixes_leave_no_error_where_one_thing_is_meant(name):
    text = TEXTS[name]
    for _ in range(MOST_ROUNDS):
        found = read_file(text.encode(), KnownNames()).diagnostics
        text = apply_fixes(text, [fix for each in found for fix in each.fixes[:1]])
    again = read_file(text.encode(), KnownNames()).diagnostics
    assert any(each.severity == "error" for each in again) == (name in UNMENDED), again


@pytest.mark.parametrize("name", TEXTS)
def test_every_fix_removes_its_finding_or_brings_the_next_one(name):
    text = TEXTS[name]
    for each in read_file(text.encode(), KnownNames()).diagnostics:
        for fix in each.fixes:
            after = apply_fixes(text, [fix])
            assert after != text
            assert each not in read_file(after.encode(), KnownNames()).diagnostics, (each, after)


def test_given_values_may_follow_a_file_on_one_line():
    text = 'rule r\n  condition c when score > 0.5 then deny\n  test "t" '
    text += 'given history "f" given amount = 5.00 expect deny\n'
    assert not [
        e for e in read_file(text.encode(), KnownNames()).diagnostics if e.severity == "error"
    ]
