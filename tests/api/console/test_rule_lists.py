"""Pages know which lists the live rules ask, and by what."""

from __future__ import annotations

from tollkeeper.api.console.rule_lists import kind_of_list, lists_for_kind

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


def test_a_rule_with_a_word_of_any_length_is_read_once():
    text = f"{RULE}# {'a' * 250_000}"
    assert kind_of_list({"gate": text}, "blocked") == "user"
