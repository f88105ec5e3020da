"""Pages know which lists the live rules ask, and by what."""

from __future__ import annotations

from tollkeeper.api.console.rule_lists import blocking_lists, kind_of_list, lists_for_kind

RULE = """rule gate
  list blocked: string
  list networks: ip
  condition known when user.id in @blocked then deny
  condition near when device.ip_address  in @networks and merchant.id in @partners then deny
"""


def test_a_list_is_known_by_the_field_that_a_rule_looks_up_in_it():
    assert lists_for_kind({"gate": RULE}, "user") == ("blocked",)
    assert kind_of_list({"gate": RULE}, "networks") == "ip"
    assert kind_of_list({"gate": RULE}, "partners") == "merchant"
    assert kind_of_list({"gate": RULE}, "unknown") is None


def test_a_list_blocks_if_a_condition_that_refuses_looks_a_value_up_in_it():
    rule = """rule gate
  list friends: string  # user.id in @commented
  let known = user.id in @known
  let odd = known and amount > 5
  condition friend "Then deny, user.id in @titled" when user.id in @friends then allow
  condition stranger when amount > 9 and not user.id in @partners then deny
  condition other when user.id not in @partners or not (user.id in @staff) then deny
  condition odd when odd or user.id in @watched
    then challenge
  must "hold" when user.id in @held never deny
  test "user.id in @tested"
    given user.id = "u-1"
    expect deny
"""
    assert blocking_lists({"gate": RULE, "other": rule}, "user") == ("blocked", "watched", "known")
    assert blocking_lists({"gate": RULE}, "ip") == ("networks",)


def test_a_let_that_names_another_twice_asks_for_its_lists_once():
    lets = [
        f"  let l{n} = l{n - 1} or not l{n - 1} or l{n - 1} == m{n - 1}\n" for n in range(1, 200)
    ]
    lets += [f"  let m{n} = l{n} and m{n - 1}\n" for n in range(1, 200)]
    rule = f"""rule gate
  let l0 = user.id in @blocked
{"".join(lets)}
  condition known when l199 or m199 then deny
"""
    assert blocking_lists({"gate": rule}, "user") == ("blocked",)


def test_a_rule_with_a_word_of_any_length_is_read_once():
    text = f"{RULE}# {'a' * 250_000}"
    assert kind_of_list({"gate": text}, "blocked") == "user"
    for word in ("a" * 250_000, "not " * 60_000, '"' * 250_000, '\\"' * 120_000):
        assert blocking_lists({"gate": RULE + word}, "user") == ("blocked",)
